package compare;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/** All that send in one repetition: how many have yet to finish, whether one has failed, and whether they should give up. */
final class Senders {
    private final CountDownLatch left;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean givenUp;

    Senders(int count) {
        left = new CountDownLatch(count);
    }

    void finished() {
        left.countDown();
    }

    void failed(Throwable why) {
        failure.compareAndSet(null, why);
        left.countDown();
    }

    boolean givenUp() {
        return givenUp;
    }

    /** Starts a sender that has a thread of its own. */
    void startThread(String name, Sending sending) {
        Thread thread = new Thread(() -> run(sending), name);
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void run(Sending sending) {
        try {
            sending.run();
            finished();
        } catch (Exception why) {
            failed(why);
        }
    }

    /** Waits for all to finish; false when they have not within this time. */
    boolean await(Duration patience) throws InterruptedException, Failure {
        boolean all = left.await(patience.toMillis(), TimeUnit.MILLISECONDS);
        if (failure.get() != null) {
            throw new Failure("a sender failed", failure.get());
        }
        return all;
    }

    /** Has all of them end, and wakes those that wait. */
    void giveUp() {
        givenUp = true;
        threads.forEach(Thread::interrupt);
    }

    /** What one sender does. */
    interface Sending {
        void run() throws Exception;
    }
}
