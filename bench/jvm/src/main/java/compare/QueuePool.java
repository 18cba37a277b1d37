package compare;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.stream.IntStream;

/** Threads that take from bounded queues. A worker holds its thread while it waits, so each needs one. */
final class QueuePool implements Pool {
    /** Odd, and without a pattern: keys that follow one another go to different workers (Knuth's multiplicative hashing). */
    private static final long GOLDEN = 0x9E37_79B9_7F4A_7C15L;

    private final boolean keyed;
    private final QueueThread[] workers;

    QueuePool(Row row, Counters counters) {
        keyed = row.kind() == Row.Kind.UNIFORM || row.kind() == Row.Kind.ZIPF;
        workers = IntStream.range(0, row.workers())
                .mapToObj(index -> new QueueThread(index, new Worker(counters, row)))
                .toArray(QueueThread[]::new);
        for (QueueThread worker : workers) {
            worker.start();
        }
    }

    @Override
    public void send(long seq, long key) throws InterruptedException {
        workerOf(seq, key).put(new Message(seq, key));
    }

    @Override
    public CompletionStage<?> call(long seq) throws InterruptedException {
        Call call = new Call(seq);
        workerOf(seq, seq).put(call);
        return call.reply;
    }

    private QueueThread workerOf(long seq, long key) {
        long chooser = keyed ? (key * GOLDEN) >>> 32 : seq;
        return workers[(int) (chooser % workers.length)];
    }

    @Override
    public boolean isBounded() {
        return true;
    }

    @Override
    public boolean takesProducers() {
        return false;
    }

    @Override
    public Optional<Executor> threads() {
        return Optional.empty();
    }

    @Override
    public void drain() throws Failure {
        for (QueueThread worker : workers) {
            if (worker.waiting() > 0) {
                throw new Failure(worker.waiting() + " messages were left over in the queue of " + worker.getName());
            }
        }
    }

    @Override
    public void close() {
        for (QueueThread worker : workers) {
            worker.interrupt();
        }
    }

    /** A message with the place for the reply to it. */
    static final class Call extends Message {
        final CompletableFuture<Long> reply = new CompletableFuture<>();

        Call(long seq) {
            super(seq, seq);
        }
    }
}
