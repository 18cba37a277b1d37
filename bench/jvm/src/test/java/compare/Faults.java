package compare;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.stream.Stream;

/** Queues by hand that do wrong with one message of the unkeyed rows, and right with all of the others. */
enum Faults implements Offer {
    DROPS {
        @Override
        void sendFaulty(Pool pool, long seq, long key) {
            // It goes nowhere.
        }
    },
    DOUBLES {
        @Override
        void sendFaulty(Pool pool, long seq, long key) throws InterruptedException {
            pool.send(seq, key);
            pool.send(seq, key);
        }
    },
    HANGS {
        @Override
        void sendFaulty(Pool pool, long seq, long key) throws InterruptedException {
            Thread.sleep(Long.MAX_VALUE);
        }
    };

    private static final long FAULTY = 77;

    abstract void sendFaulty(Pool pool, long seq, long key) throws InterruptedException;

    @Override
    public String title() {
        return name().toLowerCase(Locale.ROOT);
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public String what() {
        return "a queue that " + title();
    }

    @Override
    public List<Row> rows() {
        return Stream.concat(Row.unkeyed().limit(1), Row.calls().limit(1)).toList();
    }

    @Override
    public Pool open(Row row, Counters counters) {
        return new Faulty(new QueuePool(row, counters));
    }

    private final class Faulty implements Pool {
        private final Pool pool;

        Faulty(Pool pool) {
            this.pool = pool;
        }

        @Override
        public void send(long seq, long key) throws InterruptedException {
            if (seq == FAULTY) {
                sendFaulty(pool, seq, key);
            } else {
                pool.send(seq, key);
            }
        }

        @Override
        public CompletionStage<?> call(long seq) throws InterruptedException {
            return pool.call(seq);
        }

        @Override
        public boolean isBounded() {
            return pool.isBounded();
        }

        @Override
        public boolean takesProducers() {
            return pool.takesProducers();
        }

        @Override
        public Optional<Executor> threads() {
            return pool.threads();
        }

        @Override
        public void drain() throws Exception {
            pool.drain();
        }

        @Override
        public void close() {
            pool.close();
        }
    }
}
