package compare;

import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** The workers of one repetition, and the way to them. */
interface Pool extends AutoCloseable {
    /**
     * Sends a message. Where the pool is bounded and full, this waits, and so holds the thread.
     *
     * @throws InterruptedException when the sender is told to give up
     */
    void send(long seq, long key) throws InterruptedException;

    /** Sends a message and promises the reply to it, a {@link Long}. */
    CompletionStage<?> call(long seq) throws InterruptedException;

    /** Whether workers have inboxes with a bound, so that senders need no throttle. */
    boolean isBounded();

    /** Whether producers may run on the threads of the workers. Otherwise they have threads of their own. */
    boolean takesProducers();

    /** Where callers may run that hold no thread while they wait. Otherwise they have threads of their own. */
    Optional<Executor> threads();

    /**
     * Stops the workers once all has been handled.
     *
     * @throws Failure when a message was left over, or had no worker
     */
    void drain() throws Exception;

    /** Frees what is left, whatever happened. */
    @Override
    void close();
}
