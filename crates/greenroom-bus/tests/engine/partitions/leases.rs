//! Partitions that another process may have by now (D12).

use greenroom::event_pool;

use super::*;

/// As it is found by a process that was paused beyond its session: three events of one partition,
/// and a lease that has run out.
async fn paused_too_long(bench: Bench) -> (Running, Arc<Lease>) {
    let (broker, letters) = (Broker::default(), bench.letters.clone());
    let lease = broker.lease(Instant::now());
    let engine = bench.engine.input_named("broker", InputConfig::default(), broker.source());
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    broker.publish(0, events("a", 3));
    let running = Running { broker, control, run: tokio::spawn(engine.run()), letters };
    a_while().await;
    (running, lease)
}

#[tokio::test(start_paused = true)]
async fn d12_a_process_that_was_paused_beyond_its_session_begins_nothing_before_its_broker_answers()
{
    let gate = Gate::new();
    gate.open();
    let bench = Bench::new().set(|engine| engine.handler("all", on(&["made"], gate.handler())));
    let (running, lease) = paused_too_long(bench).await;
    assert_eq!(gate.started(), [""; 0]);
    lease.extend(Instant::now() + Duration::from_secs(600));
    a_while().await;
    assert_eq!(gate.started().len(), 3, "the broker still counts it in");
    assert_eq!(running.ended().await.handled, 3);
}

#[tokio::test(start_paused = true)]
async fn d12_a_process_that_was_paused_beyond_its_session_begins_nothing_that_it_has_lost() {
    let gate = Gate::new();
    gate.open();
    let bench = Bench::new().set(|engine| engine.handler("all", on(&["made"], gate.handler())));
    let (running, lease) = paused_too_long(bench).await;
    running.broker.revoke(0);
    a_while().await;
    lease.extend(Instant::now() + Duration::from_secs(600));
    a_while().await;
    assert_eq!((gate.started(), how(&running.broker.settled(0))), (Vec::new(), vec![REVOKED; 3]));
    assert_eq!(running.ended().await.revoked, 3);
}

#[tokio::test(start_paused = true)]
async fn d12_what_no_lease_covers_is_not_begun_in_a_batch_with_what_one_does() {
    let (gate, other) = (Gate::new(), Broker::default());
    let lease = other.lease(Instant::now());
    let batches = Some(greenroom::batch::Batches::of(8));
    let bench = Bench::new().set(|engine| {
        engine
            .pool(
                "default",
                PoolConfig { batches, engine: event_pool::Engine::Shared, ..pool(1, 100) },
            )
            .handler("all", HandlerConfig { order_by: None, ..on(&["made"], gate.handler()) })
            .input_named("other", InputConfig::default(), other.source())
    });
    let running = Running::new(InputConfig::default(), bench).await;
    // The first is in hand, the others are one batch.
    for _ in 0..2 {
        running.broker.publish(0, events("ours", 1));
        a_while().await;
    }
    other.publish(0, events("other", 1));
    a_while().await;
    gate.open();
    a_while().await;
    assert_eq!(gate.started(), ["ours0"]);
    lease.extend(Instant::now() + Duration::from_secs(600));
    a_while().await;
    assert_eq!(gate.started(), ["ours0", "ours0", "other0"]);
    other.end();
    assert_eq!(running.ended().await.handled, 3);
}

type IdAndFence = (String, Option<u64>);

/// A handler that notes the fences that it is told.
#[derive(Clone, Default)]
struct Fenced(Arc<Mutex<Vec<IdAndFence>>>);

impl HandlerFactory for Fenced {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }

    fn sends_fence(&self) -> bool {
        true
    }
}

impl Handler for Fenced {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        self.0.lock().push((event.id().to_owned(), attempt.fence));
        Handling::Done(Ok(Outputs::None))
    }
}

#[tokio::test(start_paused = true)]
async fn d12_what_a_partition_gives_in_a_later_assignment_has_a_higher_fence() {
    let handler = Fenced::default();
    let factory = Arc::new(handler.clone());
    let bench = Bench::new().set(|engine| engine.handler("all", on(&["made"], factory)));
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 2));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    running.broker.assign(0);
    running.broker.publish(0, events("b", 1));
    a_while().await;
    let told = handler.0.lock().clone();
    let fence = |id: &str| told.iter().find(|(known, _)| known == id).unwrap().1.unwrap();
    assert_eq!(fence("a0"), fence("a1"));
    assert!(fence("b0") > fence("a0"), "{told:?}");
    running.ended().await;
}

/// It holds what it accepts, and delivers to others.
#[derive(Default)]
struct Holds(Mutex<Vec<Outgoing>>);

impl Sink for Holds {
    fn describe(&self) -> String {
        "holds".to_owned()
    }

    fn try_accept(&self, outgoing: Outgoing) -> Result<(), Outgoing> {
        self.0.lock().push(outgoing);
        Ok(())
    }

    fn accept<'a>(&'a self, outgoing: Outgoing) -> BoxFuture<'a, ()> {
        self.0.lock().push(outgoing);
        Box::pin(std::future::ready(()))
    }

    fn finish<'a>(&'a self) -> BoxFuture<'a, Result<(), SinkError>> {
        self.0.lock().clear();
        Box::pin(std::future::ready(Ok(())))
    }

    fn failure(&self) -> Option<SinkError> {
        None
    }

    fn is_remote(&self) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn d12_an_output_knows_of_what_it_holds_that_its_partition_was_taken_away() {
    let sink = Arc::new(Holds::default());
    let all = vec!["**".parse().unwrap()];
    let engine = Engine::builder()
        .output("out", all, sink.clone())
        .dead_letters(Arc::new(MemoryLetters::default()));
    let bench = Bench { engine, ..Bench::new() };
    let bench = bench.set(|engine| engine.handler("all", on(&["made"], pass())));
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 2));
    running.broker.publish(1, events("b", 1));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    let revoked = |id: &str| {
        let held = sink.0.lock();
        let found = held.iter().find(|outgoing| outgoing.event.id() == id).unwrap();
        assert!(found.fence.is_some());
        found.ack.is_revoked()
    };
    assert_eq!(["a0", "a1", "b0"].map(revoked), [true, true, false]);
    let report = running.ended().await;
    assert_eq!((report.revoked, report.refused), (2, 1));
}
