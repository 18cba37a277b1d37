package compare;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicInteger;

/** What each worker has handled. Each has one writer, and two cache lines that nobody else writes to. */
final class Counters {
    private static final VarHandle CELL = MethodHandles.arrayElementVarHandle(long[].class);
    /** Numbers of one worker: 128 bytes, as processors fetch lines in pairs. */
    private static final int STRIDE = 16;
    /** Where a worker's sum of sequence numbers lies, behind its count. */
    private static final int SUM = 1;
    /** Where results go that must not be optimized away. */
    private static final int SINK = 2;

    private final int workers;
    private final long[] cells;
    private final AtomicInteger claimed = new AtomicInteger();

    Counters(int workers) {
        this.workers = workers;
        // One stride more, so that the array's own header shares no line with the first worker.
        cells = new long[(workers + 2) * STRIDE];
    }

    /** The counter of a worker that has none yet. */
    Counter claim() {
        int worker = claimed.getAndIncrement();
        if (worker >= workers) {
            throw new IllegalStateException("worker " + worker + " was started, but there are counters for " + workers);
        }
        return new Counter((worker + 1) * STRIDE);
    }

    int workers() {
        return workers;
    }

    long handled() {
        return total(0);
    }

    /** Fails unless each of the messages 0 to {@code messages} has been handled once, as far as their number and sum can tell. */
    void check(long messages) throws Failure {
        long handled = handled();
        if (handled != messages) {
            String what = handled < messages ? "lost: " : "handled twice: ";
            throw new Failure(what + handled + " of " + messages + " messages were handled");
        }
        long expected = messages % 2 == 0 ? messages / 2 * (messages - 1) : (messages - 1) / 2 * messages;
        if (total(SUM) != expected) {
            throw new Failure("some messages are lost and others were handled twice: their sequence numbers add up to "
                    + total(SUM) + ", not to " + expected);
        }
    }

    private long total(int offset) {
        long sum = 0;
        for (int worker = 1; worker <= workers; worker++) {
            sum += (long) CELL.getAcquire(cells, worker * STRIDE + offset);
        }
        return sum;
    }

    /** The counter of one worker, which alone may write to it. */
    final class Counter {
        private final int at;

        private Counter(int at) {
            this.at = at;
        }

        void add(long seq, long result) {
            cells[at + SINK] ^= result;
            CELL.setRelease(cells, at + SUM, cells[at + SUM] + seq);
            CELL.setRelease(cells, at, cells[at] + 1);
        }
    }
}
