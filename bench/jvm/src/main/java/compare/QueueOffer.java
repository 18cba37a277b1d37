package compare;

import java.util.List;
import java.util.stream.Stream;

/** What is written by hand without a library: a thread and a blocking queue for each worker. */
final class QueueOffer implements Offer {
    @Override
    public String title() {
        return "java queue";
    }

    @Override
    public String version() {
        return Runtime.version().toString();
    }

    @Override
    public String what() {
        return "ArrayBlockingQueue and thread for each worker, round robin or by the key's hash";
    }

    @Override
    public List<Row> rows() {
        return Stream.of(Row.unkeyed(), Row.keyed(), Row.calls()).flatMap(rows -> rows).toList();
    }

    @Override
    public Pool open(Row row, Counters counters) {
        return new QueuePool(row, counters);
    }
}
