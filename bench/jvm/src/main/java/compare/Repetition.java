package compare;

import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongUnaryOperator;

/** One measurement of one system: starts its workers and senders, and waits until all has been handled. */
final class Repetition {
    private static final int PRODUCERS = 2;
    /** How often the counters are looked at once all is sent: reading one takes its line from the worker that writes it. */
    private static final Duration LOOK = Duration.ofNanos(200_000);
    /** Time for a message that was sent twice to be handled twice. */
    private static final Duration AFTERMATH = Duration.ofMillis(5);

    private final Offer offer;
    private final Row row;
    private final long messages;
    private final Duration patience;
    private final Counters counters;
    private final Senders senders;

    /** Fails when nothing is handled for as long as {@code patience}. */
    Repetition(Offer offer, Row row, long messages, Duration patience) {
        this.offer = offer;
        this.row = row;
        this.messages = messages;
        this.patience = patience;
        counters = new Counters(row.workers());
        senders = new Senders(row.kind().isCalls() ? row.callers() : PRODUCERS);
    }

    /** The figure, in the unit of the row. */
    double run() throws Exception {
        LongUnaryOperator keys = KeysOfRows.of(row);
        try (Pool pool = offer.open(row, counters)) {
            try {
                long nanos = time(pool, keys);
                Thread.sleep(AFTERMATH.toMillis());
                pool.drain();
                counters.check(messages);
                return row.figure(messages, nanos);
            } finally {
                senders.giveUp();
            }
        }
    }

    private long time(Pool pool, LongUnaryOperator keys) throws Exception {
        long start = System.nanoTime();
        if (row.kind().isCalls()) {
            startCallers(pool);
        } else {
            startProducers(pool, keys);
        }
        awaitSenders();
        awaitHandled();
        return System.nanoTime() - start;
    }

    private void startProducers(Pool pool, LongUnaryOperator keys) {
        Window window = new Window(counters);
        for (int index = 0; index < PRODUCERS; index++) {
            Producer producer = new Producer(pool, senders, keys, Share.of(index, PRODUCERS, messages));
            if (pool.takesProducers()) {
                producer.sendInTurns(threads(pool), window);
            } else if (pool.isBounded()) {
                senders.startThread("producer-" + index, producer::sendAll);
            } else {
                senders.startThread("producer-" + index, () -> producer.sendThrottled(window));
            }
        }
    }

    private static Executor threads(Pool pool) {
        return pool.threads().orElseThrow(() -> new IllegalStateException("a pool that takes producers has no threads"));
    }

    private void startCallers(Pool pool) {
        for (int index = 0; index < row.callers(); index++) {
            Caller caller = new Caller(pool, senders, patience.toMillis(), Share.of(index, row.callers(), messages));
            if (pool.threads().isPresent()) {
                caller.callInTurns(threads(pool));
            } else {
                senders.startThread("caller-" + index, caller::callAll);
            }
        }
    }

    private void awaitSenders() throws InterruptedException, Failure {
        long seen = counters.handled();
        while (!senders.await(patience)) {
            long now = counters.handled();
            if (now == seen) {
                throw new Failure("senders hang: nothing was handled for " + patience.toMillis() + " ms after " + now
                        + " of " + messages + " messages");
            }
            seen = now;
        }
    }

    private void awaitHandled() throws Failure {
        long seen = counters.handled();
        long since = System.nanoTime();
        while (seen < messages) {
            LockSupport.parkNanos(LOOK.toNanos());
            long now = counters.handled();
            if (now > seen) {
                seen = now;
                since = System.nanoTime();
            } else if (System.nanoTime() - since > patience.toNanos()) {
                throw new Failure("lost: " + seen + " of " + messages + " messages were handled, and none for "
                        + patience.toMillis() + " ms");
            }
        }
    }
}
