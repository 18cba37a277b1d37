package compare;

import java.util.function.LongUnaryOperator;

/** The keys of each row. They are drawn when they are first asked for, and are the same in every repetition. */
final class KeysOfRows {
    private KeysOfRows() {}

    /** From the number of a message to its key. */
    static LongUnaryOperator of(Row row) {
        return switch (row.kind()) {
            case UNIFORM -> Uniform.KEYS::of;
            case ZIPF -> Zipf.KEYS::of;
            case UNKEYED, CALL, CALLS -> LongUnaryOperator.identity();
        };
    }

    private static final class Uniform {
        static final Keys KEYS = Keys.uniform();
    }

    private static final class Zipf {
        static final Keys KEYS = Keys.zipf();
    }
}
