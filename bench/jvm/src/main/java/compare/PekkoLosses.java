package compare;

import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.AllDeadLetters;
import org.apache.pekko.actor.Props;

/** Counts messages that reached no worker, and says how many when asked. */
final class PekkoLosses extends AbstractActor {
    /** The question for the number so far. */
    static final Object HOW_MANY = "how many?";

    private long lost;

    static Props props() {
        return Props.create(PekkoLosses.class, PekkoLosses::new);
    }

    @Override
    public void preStart() {
        getContext().getSystem().getEventStream().subscribe(getSelf(), AllDeadLetters.class);
    }

    @Override
    public Receive createReceive() {
        return receiveBuilder()
                .match(AllDeadLetters.class, letter -> letter.message() instanceof Message, letter -> lost++)
                .matchEquals(HOW_MANY, asked -> getSender().tell(lost, getSelf()))
                .build();
    }
}
