package compare;

import java.util.Arrays;
import java.util.stream.Stream;

/** A row of the table: what is sent, to how many workers. */
record Row(String name, Kind kind, int workers, int workNanos) {
    enum Kind {
        UNKEYED,
        UNIFORM,
        ZIPF,
        /** One caller. */
        CALL,
        /** 64 callers at once. */
        CALLS;

        boolean isCalls() {
            return this == CALL || this == CALLS;
        }
    }

    private static final int[] WORKERS = {4, 256};
    private static final int[] WORK_NANOS = {0, 75, 460, 2_400};

    static Stream<Row> unkeyed() {
        return Arrays.stream(WORKERS).boxed().flatMap(Row::unkeyed);
    }

    private static Stream<Row> unkeyed(int workers) {
        return Arrays.stream(WORK_NANOS).mapToObj(nanos -> {
            String name = nanos == 0 ? "A" + workers : "A" + workers + "-" + nanos + "ns";
            return new Row(name, Kind.UNKEYED, workers, nanos);
        });
    }

    static Stream<Row> keyed() {
        return Stream.of(new Row("B-uniform", Kind.UNIFORM, 256, 0), new Row("B-zipf", Kind.ZIPF, 256, 0));
    }

    static Stream<Row> calls() {
        return Stream.of(new Row("D1", Kind.CALL, 4, 0), new Row("D64", Kind.CALLS, 4, 0));
    }

    int callers() {
        return kind == Kind.CALLS ? 64 : 1;
    }

    /** The figure of a repetition, in the unit of the row: M/s, or ns per call. */
    double figure(long messages, long nanos) {
        return kind.isCalls() ? (double) nanos / messages : 1_000.0 * messages / nanos;
    }
}
