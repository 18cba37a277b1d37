package compare;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.pattern.Patterns;
import org.apache.pekko.routing.GetRoutees;
import org.apache.pekko.routing.Routees;

/** A router with its workers, in an actor system of its own, so that no repetition finds what another has left. */
final class PekkoPool implements Pool {
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final ActorSystem system = ActorSystem.create("compare");
    private final ActorRef losses = system.actorOf(PekkoLosses.props(), "losses");
    private final PekkoRouting routing;
    private final boolean bounded;
    private final ActorRef router;

    private PekkoPool(PekkoRouting routing, boolean bounded, Row row, Counters counters) {
        this.routing = routing;
        this.bounded = bounded;
        // By its name, a balancing pool finds its settings.
        String name = routing.path + (bounded ? "-bounded-" : "-") + row.workers();
        router = system.actorOf(props(row, counters), name);
    }

    static PekkoPool open(PekkoRouting routing, boolean bounded, Row row, Counters counters) throws Exception {
        PekkoPool pool = new PekkoPool(routing, bounded, row, counters);
        try {
            pool.awaitWorkers(row.workers());
            return pool;
        } catch (Exception why) {
            pool.close();
            throw why;
        }
    }

    /** The mailbox of a balancing pool belongs to its dispatcher instead. */
    private Props props(Row row, Counters counters) {
        Props worker = PekkoWorker.props(row, counters);
        boolean ownMailboxes = bounded && routing != PekkoRouting.BALANCING;
        return (ownMailboxes ? worker.withMailbox("bounded") : worker).withRouter(routing.of(row.workers()));
    }

    private void awaitWorkers(int workers) throws Exception {
        Routees routees = (Routees) get(Patterns.ask(router, GetRoutees.getInstance(), PATIENCE));
        if (routees.getRoutees().size() != workers) {
            throw new Failure(routees.getRoutees().size() + " workers have started, not " + workers);
        }
    }

    @Override
    public void send(long seq, long key) {
        Message message = routing == PekkoRouting.CONSISTENT_HASHING ? new PekkoKeyed(seq, key) : new Message(seq, key);
        router.tell(message, ActorRef.noSender());
    }

    @Override
    public CompletionStage<?> call(long seq) {
        return Patterns.ask(router, new Message(seq, seq), PATIENCE);
    }

    @Override
    public boolean isBounded() {
        return bounded;
    }

    /**
     * Those that wait in {@link #send} would hold a thread that the workers need. A balancing pool has threads of its own, and
     * starts no second worker while they are busy, be it with producers.
     */
    @Override
    public boolean takesProducers() {
        return !bounded && routing != PekkoRouting.BALANCING;
    }

    @Override
    public Optional<Executor> threads() {
        return Optional.of(system.dispatcher());
    }

    @Override
    public void drain() throws Exception {
        get(Patterns.gracefulStop(router, PATIENCE));
        long lost = (Long) get(Patterns.ask(losses, PekkoLosses.HOW_MANY, PATIENCE));
        if (lost > 0) {
            throw new Failure(lost + " messages were left over or reached no worker");
        }
    }

    @Override
    public void close() {
        system.terminate();
        try {
            get(system.getWhenTerminated());
        } catch (Exception why) {
            System.err.println("an actor system does not end: " + why);
        }
    }

    private static <T> T get(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(PATIENCE.toMillis(), TimeUnit.MILLISECONDS);
    }
}
