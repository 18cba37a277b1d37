package compare;

/** What a worker of any system does with a message. */
final class Worker {
    private final Counters.Counter counter;
    private final Work work;

    Worker(Counters counters, Row row) {
        counter = counters.claim();
        work = Work.ofNanos(row.workNanos());
    }

    void take(Message message) {
        counter.add(message.seq, work.run(message.seq) ^ message.last);
    }
}
