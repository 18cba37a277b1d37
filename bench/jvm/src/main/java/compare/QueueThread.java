package compare;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/** A worker of a {@link QueuePool}: takes from its queue until it is interrupted. */
final class QueueThread extends Thread {
    private static final int CAPACITY = 1_000;

    private final BlockingQueue<Message> queue = new ArrayBlockingQueue<>(CAPACITY);
    private final Worker worker;

    QueueThread(int index, Worker worker) {
        super("worker-" + index);
        setDaemon(true);
        this.worker = worker;
    }

    void put(Message message) throws InterruptedException {
        queue.put(message);
    }

    int waiting() {
        return queue.size();
    }

    @Override
    public void run() {
        try {
            while (true) {
                handle(queue.take());
            }
        } catch (InterruptedException end) {
            // This is how a worker is told to end.
            return;
        }
    }

    private void handle(Message message) {
        worker.take(message);
        if (message instanceof QueuePool.Call call) {
            call.reply.complete(call.reply());
        }
    }
}
