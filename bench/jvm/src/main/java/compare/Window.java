package compare;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Keeps those that send to an unbounded pool from running away: together, they have no more than a number of messages in flight.
 * They take leave for many at once, as adding up all counters takes their lines from the workers.
 */
final class Window {
    /** Messages that were sent and not yet handled, at most. */
    static final long IN_FLIGHT = 65_536;
    /** Messages that a sender may send at once: few, where it runs on a thread that the workers need too. */
    static final long LEAVE = 256;

    private final Counters counters;
    private final AtomicLong granted = new AtomicLong();
    private volatile long handled;

    Window(Counters counters) {
        this.counters = counters;
    }

    /** Grants leave to send {@link #LEAVE} messages, or does not. */
    boolean take() {
        long before = granted.get();
        return hasRoom(before) && granted.compareAndSet(before, before + LEAVE);
    }

    private boolean hasRoom(long before) {
        if (before + LEAVE - handled <= IN_FLIGHT) {
            return true;
        }
        handled = counters.handled();
        return before + LEAVE - handled <= IN_FLIGHT;
    }
}
