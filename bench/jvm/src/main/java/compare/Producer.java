package compare;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;

/** Sends its share of the messages, each with the key that belongs to its number. */
final class Producer {
    /** How long a producer rests where the window is shut: too short for the workers to run out of messages. */
    private static final Duration NAP = Duration.ofNanos(50_000);
    /** Wakes those that rest and hold no thread meanwhile. */
    private static final ScheduledExecutorService ALARM = Executors.newSingleThreadScheduledExecutor(Producer::daemon);

    private final Pool pool;
    private final Senders senders;
    private final LongUnaryOperator keys;
    private final long end;
    private long next;

    Producer(Pool pool, Senders senders, LongUnaryOperator keys, Share share) {
        this.pool = pool;
        this.senders = senders;
        this.keys = keys;
        next = share.first();
        end = share.end();
    }

    /** Sends all from this thread, which waits where the pool is full. */
    void sendAll() throws InterruptedException {
        sendUpTo(end);
    }

    /** Sends all from this thread, which sleeps where the window is shut. */
    void sendThrottled(Window window) throws InterruptedException {
        while (next < end && !senders.givenUp()) {
            if (window.take()) {
                sendUpTo(Math.min(next + Window.LEAVE, end));
            } else {
                LockSupport.parkNanos(NAP.toNanos());
            }
        }
    }

    /** Sends as the window permits, in turns of which none waits, so that workers may have the thread in between. */
    void sendInTurns(Executor threads, Window window) {
        threads.execute(() -> turn(threads, window));
    }

    private void turn(Executor threads, Window window) {
        try {
            boolean open = window.take();
            if (open) {
                sendUpTo(Math.min(next + Window.LEAVE, end));
            }
            if (next == end) {
                senders.finished();
            } else if (senders.givenUp()) {
                return;
            } else if (open) {
                sendInTurns(threads, window);
            } else {
                ALARM.schedule(() -> sendInTurns(threads, window), NAP.toNanos(), TimeUnit.NANOSECONDS);
            }
        } catch (InterruptedException | RuntimeException why) {
            senders.failed(why);
        }
    }

    private static Thread daemon(Runnable alarm) {
        Thread thread = new Thread(alarm, "alarm");
        thread.setDaemon(true);
        return thread;
    }

    private void sendUpTo(long edge) throws InterruptedException {
        long seq = next;
        while (seq < edge && !senders.givenUp()) {
            pool.send(seq, keys.applyAsLong(seq));
            seq++;
        }
        next = seq;
    }
}
