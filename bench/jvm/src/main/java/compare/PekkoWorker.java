package compare;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.Props;

/** A worker as an actor. It answers where it is asked, as a reply that nobody waits for would be a dead letter. */
final class PekkoWorker extends AbstractActor {
    private final Worker worker;
    private final boolean answers;

    private PekkoWorker(Worker worker, boolean answers) {
        this.worker = worker;
        this.answers = answers;
    }

    static Props props(Row row, Counters counters) {
        boolean answers = row.kind().isCalls();
        return Props.create(PekkoWorker.class, () -> new PekkoWorker(new Worker(counters, row), answers));
    }

    @Override
    public Receive createReceive() {
        return answers
                ? receiveBuilder().match(Message.class, this::answer).build()
                : receiveBuilder().match(Message.class, worker::take).build();
    }

    private void answer(Message message) {
        worker.take(message);
        getSender().tell(message.reply(), getSelf());
    }
}
