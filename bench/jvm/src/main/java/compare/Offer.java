package compare;

import java.util.List;

/** One of the systems that are compared. */
interface Offer {
    /** What it is called in requests. */
    String title();

    String version();

    String what();

    List<Row> rows();

    /** Starts the workers for a repetition of a row. */
    Pool open(Row row, Counters counters) throws Exception;
}
