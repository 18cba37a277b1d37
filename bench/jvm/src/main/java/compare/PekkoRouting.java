package compare;

import java.util.List;
import java.util.stream.Stream;
import org.apache.pekko.routing.BalancingPool;
import org.apache.pekko.routing.ConsistentHashingPool;
import org.apache.pekko.routing.RoundRobinPool;
import org.apache.pekko.routing.RouterConfig;

/** The pools of Pekko that take part. */
enum PekkoRouting {
    ROUND_ROBIN("pekko round-robin", "round-robin", "RoundRobinPool"),
    BALANCING("pekko balancing", "balancing", "BalancingPool"),
    CONSISTENT_HASHING("pekko consistent hashing", "consistent-hashing", "ConsistentHashingPool");

    final String system;
    /** How a router's name begins. */
    final String path;
    final String type;

    PekkoRouting(String system, String path, String type) {
        this.system = system;
        this.path = path;
        this.type = type;
    }

    List<Row> rows() {
        return this == CONSISTENT_HASHING ? Row.keyed().toList() : Stream.concat(Row.unkeyed(), Row.calls()).toList();
    }

    RouterConfig of(int workers) {
        return switch (this) {
            case ROUND_ROBIN -> new RoundRobinPool(workers);
            case BALANCING -> new BalancingPool(workers);
            case CONSISTENT_HASHING -> new ConsistentHashingPool(workers);
        };
    }
}
