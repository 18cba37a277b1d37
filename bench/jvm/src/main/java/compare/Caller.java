package compare;

import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/** Makes its share of the calls, each once the one before is answered. */
final class Caller {
    private final Pool pool;
    private final Senders senders;
    private final long patienceMillis;
    private final long end;
    private long next;

    Caller(Pool pool, Senders senders, long patienceMillis, Share share) {
        this.pool = pool;
        this.senders = senders;
        this.patienceMillis = patienceMillis;
        next = share.first();
        end = share.end();
    }

    /** Waits for each reply in this thread. */
    void callAll() throws Exception {
        for (; next < end; next++) {
            check(pool.call(next).toCompletableFuture().get(patienceMillis, TimeUnit.MILLISECONDS));
        }
    }

    /** Goes on with the next call when a reply comes, and holds no thread meanwhile. */
    void callInTurns(Executor threads) {
        threads.execute(() -> turn(threads));
    }

    private void turn(Executor threads) {
        try {
            if (next == end) {
                senders.finished();
            } else if (!senders.givenUp()) {
                pool.call(next).whenCompleteAsync((reply, failure) -> answered(reply, failure, threads), threads);
            }
        } catch (InterruptedException | RuntimeException why) {
            senders.failed(why);
        }
    }

    private void answered(Object reply, Throwable failure, Executor threads) {
        try {
            if (failure != null) {
                throw new Failure("call " + next + " has no reply", failure);
            }
            check(reply);
            next++;
        } catch (Failure why) {
            senders.failed(why);
            return;
        }
        turn(threads);
    }

    private void check(Object reply) throws Failure {
        if (!Long.valueOf(next + 1).equals(reply)) {
            throw new Failure("call " + next + " got the reply " + reply);
        }
    }
}
