package compare;

import java.util.List;
import org.apache.pekko.actor.ActorSystem;

/** A pool of Pekko, with bounded mailboxes or with those that Pekko has by default. */
record PekkoOffer(PekkoRouting routing, boolean isBounded) implements Offer {
    @Override
    public String title() {
        return isBounded ? routing.system : routing.system + " unbounded";
    }

    @Override
    public String version() {
        return ActorSystem.Version();
    }

    @Override
    public String what() {
        return routing.type + (isBounded ? ", bounded mailboxes, senders wait" : ", default mailboxes, senders throttled");
    }

    @Override
    public List<Row> rows() {
        return routing.rows();
    }

    @Override
    public Pool open(Row row, Counters counters) throws Exception {
        return PekkoPool.open(routing, isBounded, row, counters);
    }
}
