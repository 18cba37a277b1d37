//! Partitions that are paused, drained and taken away one by one (D15).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use greenroom_bus::{
    BoxFuture,
    engine::{
        Control, Engine, HandlerConfig, InputConfig, LoopbackConfig, PartitionView, PoolConfig,
        RunReport,
    },
    event::Event,
    handler::{
        Attempt, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling, Outputs,
    },
    settlement::{Outcome, Refusal, Settled},
    sink::{Outgoing, Sink, SinkError},
    source::{Lease, Partition, PartitionStanding, Pull, Source, SourceError, Taken},
};
use greenroom_test::partitioned::Broker;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinHandle};

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::{handle, pass, slow},
    letters::MemoryLetters,
    ms, on, pool,
    sink::{Behaviour, MemorySink},
    sized,
    source::Step,
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);
const REVOKED: Settled = Settled::Refused(Refusal::Revoked);

/// What was started, and may end when the test says so.
#[derive(Clone)]
struct Gate {
    started: Arc<Mutex<Vec<String>>>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { started: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    fn handler(&self) -> Arc<dyn HandlerFactory> {
        let gate = self.clone();
        handle(move |event, _| {
            let gate = gate.clone();
            async move {
                gate.started.lock().push(event.id().to_owned());
                gate.open.acquire().await.unwrap().forget();
                Ok(Outputs::Same)
            }
        })
    }

    fn open(&self) {
        self.open.add_permits(1_000_000);
    }

    fn started(&self) -> Vec<String> {
        self.started.lock().clone()
    }
}

struct Running {
    broker: Broker,
    control: Control,
    run: JoinHandle<RunReport>,
    letters: Arc<MemoryLetters>,
}

impl Running {
    async fn new(config: InputConfig, bench: Bench) -> Self {
        let broker = Broker::default();
        let letters = bench.letters.clone();
        let engine = bench.engine.input_named("broker", config, broker.source());
        let engine = engine.build().await.unwrap();
        let control = engine.control();
        Self { broker, control, run: tokio::spawn(engine.run()), letters }
    }

    async fn ended(self) -> RunReport {
        self.broker.end();
        let report = tokio::time::timeout(crate::engine::support::HANG, self.run).await;
        assert_eq!(self.broker.misuse(), [""; 0]);
        checked(report.expect("the run did not end").unwrap())
    }

    fn partition(&self, partition: u32) -> Option<PartitionView> {
        let views = self.control.input_views().remove(0).partitions;
        views.into_iter().find(|view| view.partition == Partition(partition))
    }
}

fn events(prefix: &str, count: usize) -> Vec<Event> {
    (0..count)
        .map(|n| event(format!("{prefix}{n}"), "made", Some(&format!("{prefix}{n}"))))
        .collect()
}

/// All of one key.
fn of_key(prefix: &str, count: usize) -> Vec<Event> {
    (0..count).map(|n| event(format!("{prefix}{n}"), "made", Some(prefix))).collect()
}

async fn a_while() {
    tokio::time::sleep(ms(500)).await;
}

fn how(settled: &[(u64, Settled)]) -> Vec<Settled> {
    settled.iter().map(|(_, how)| *how).collect()
}

#[tokio::test(start_paused = true)]
async fn d15_d03_a_full_partition_pauses_that_partition_only() {
    let bench = Bench::new().set(|engine| {
        engine
            .pool("stuck", pool(1, 1))
            .pool("free", pool(1, 10))
            .handler(
                "stuck",
                HandlerConfig { pool: "stuck".into(), ..on(&["made"], Gate::new().handler()) },
            )
            .handler("free", HandlerConfig { pool: "free".into(), ..on(&["free"], pass()) })
    });
    let config = InputConfig { run_ahead: 20, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    running.broker.publish(0, events("a", 1_000));
    running.broker.publish(1, [event("b", "free", None)]);
    a_while().await;
    assert_eq!(running.broker.paused(), [0]);
    let given = running.broker.given(0);
    assert!(
        (12..=26).contains(&given),
        "{given}: one in hand, one queued, ten beside it, and its batch"
    );
    running.broker.publish(1, (0..500).map(|n| event(n, "free", None)));
    a_while().await;
    assert_eq!(how(&running.broker.settled(1)), [HANDLED; 501]);
    assert_eq!((running.broker.paused(), running.broker.given(0)), (vec![0], given));
    let view = running.partition(0).unwrap();
    assert!(view.is_paused && view.held_back >= 10, "{view:?}");
    assert!(!running.partition(1).unwrap().is_paused);
    running.control.stop_now();
    checked(running.run.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn d15_partitions_take_turns_so_that_keys_of_all_of_them_are_in_hand() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(40, 400)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    // Each comes in one piece, of four keys.
    for partition in 0..10 {
        let key = |n: usize| format!("{partition}-{}", n % 4);
        let events = (0..400).map(|n| event(format!("{partition}-{n}"), "made", Some(&key(n))));
        running.broker.publish(partition, events.collect::<Vec<_>>());
        // All of it waits before the next one comes.
        a_while().await;
    }
    // The first fills the pool; behind it, each has its turn.
    gate.open.add_permits(600);
    a_while().await;
    let in_hand = running.control.pool_views().remove(0).stats.in_hand;
    // One after the other, the window of the pool holds events of two partitions, so eight keys.
    assert!(in_hand >= 30, "{in_hand} of the 36 keys that the other partitions have");
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.out_of_order), (4_000, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_d03_bytes_in_flight_are_of_a_partition() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 1_000)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { in_flight_bytes: 100 << 10, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    let large = |prefix: &str| -> Vec<Event> {
        (0..200)
            .map(|n| sized(format!("{prefix}{n}"), "made", Some(&n.to_string()), 1 << 10))
            .collect()
    };
    running.broker.publish(0, large("a"));
    a_while().await;
    let alone = running.partition(0).unwrap();
    assert_eq!((alone.in_flight_limit, alone.is_paused), (100 << 10, true));
    running.broker.publish(1, large("b"));
    a_while().await;
    let views = [0, 1].map(|partition| running.partition(partition).unwrap());
    assert!(views.iter().all(|view| view.in_flight_limit == 50 << 10), "{views:?}");
    assert!((45 << 10..=50 << 10).contains(&views[1].in_flight_bytes), "{views:?}");
    assert_eq!(running.broker.paused(), [0, 1]);
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.revoked), (400, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_a_source_that_heeds_no_pause_loses_nothing_and_keeps_its_order() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { in_flight_bytes: 1_000, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    running.broker.heed_no_pause();
    running.broker.publish(0, of_key("a", 100));
    a_while().await;
    assert_eq!(running.broker.given(0), 100, "it was not asked for so many");
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.taken, report.handled), (100, 100));
    let expected: Vec<String> = (0..100).map(|n| format!("a{n}")).collect();
    assert_eq!(gate.started(), expected);
}

#[tokio::test(start_paused = true)]
async fn d15_events_of_a_revoked_partition_are_not_started_and_give_up_their_room() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 20)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 50));
    a_while().await;
    running.broker.publish(1, events("b", 5));
    a_while().await;
    assert_eq!(gate.started(), ["a0"]);
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.revoked(), [0]);
    assert_eq!(running.broker.settled(0).len(), 49, "all but what is in hand, at once");
    assert!(running.partition(0).is_none());
    let input = running.control.input_views().remove(0);
    assert_eq!(input.held_back, 0, "there is room in the pool now");
    gate.open();
    let broker = running.broker.clone();
    let report = running.ended().await;
    assert_eq!(gate.started(), ["a0", "b0", "b1", "b2", "b3", "b4"]);
    assert_eq!((report.taken, report.handled, report.revoked, report.refused), (55, 6, 49, 0));
    assert!(report.is_clean(), "whoever has it now handles the rest: {report:?}");
    let mut expected = vec![REVOKED; 50];
    expected[0] = HANDLED;
    assert_eq!(how(&broker.settled(0)), expected);
}

#[tokio::test(start_paused = true)]
async fn d15_a_partition_that_comes_back_begins_anew_and_a_key_has_one_owner() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(4, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 5));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    running.broker.assign(0);
    a_while().await;
    assert_eq!(gate.started(), ["a0"], "the same key is in hand still");
    gate.open();
    let report = running.ended().await;
    assert_eq!(gate.started(), ["a0", "a0", "a1", "a2", "a3", "a4"]);
    assert_eq!((report.handled, report.revoked), (6, 4));
}

#[tokio::test(start_paused = true)]
async fn d15_what_waits_for_another_attempt_is_given_up_as_well() {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let told = attempts.clone();
    let failing = handle(move |event, attempt| {
        told.lock().push((event.id().to_owned(), attempt));
        async {
            Err(Failure::new(
                FailureKind::Retry { after: Some(Duration::from_secs(10)) },
                "not now",
            ))
        }
    });
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(4, 100)).handler("all", on(&["made"], failing)));
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 3));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 3]);
    let letters = running.letters.clone();
    let report = running.ended().await;
    assert_eq!(*attempts.lock(), [("a0".to_owned(), 1)]);
    assert_eq!((report.revoked, report.dead_lettered, letters.stored().len()), (3, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_parked_keys_of_a_revoked_partition_are_given_up() {
    let parking = handle(|event, _| async move {
        match event.id() {
            "a0" => Err(Failure::new(FailureKind::Park, "ask somebody")),
            _ => Ok(Outputs::Same),
        }
    });
    let bench = Bench::new()
        .set(|engine| engine.pool("default", pool(4, 100)).handler("all", on(&["made"], parking)));
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 4));
    running.broker.publish(1, of_key("b", 4));
    a_while().await;
    assert_eq!(running.broker.settled(0).len(), 0);
    running.broker.revoke(0);
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 4]);
    assert_eq!(running.control.progress().parked_events, 0);
    let report = running.ended().await;
    assert_eq!((report.handled, report.revoked, report.parked), (4, 4, 0));
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d15_what_fails_for_good_after_its_partition_was_revoked_is_no_dead_letter() {
    let gate = Gate::new();
    let waits = gate.clone();
    let rejecting = handle(move |event, _| {
        let gate = waits.clone();
        async move {
            gate.started.lock().push(event.id().to_owned());
            gate.open.acquire().await.unwrap().forget();
            match event.id() {
                "a0" => Err(Failure::reject("no")),
                "a1" => Err(Failure::new(FailureKind::Park, "ask somebody")),
                _ => panic!("a handler that panics"),
            }
        }
    });
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(4, 100)).handler("all", on(&["made"], rejecting))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 3));
    a_while().await;
    assert_eq!(gate.started().len(), 3);
    running.broker.revoke(0);
    a_while().await;
    gate.open();
    tokio::time::sleep(ms(2_000)).await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 3]);
    let letters = running.letters.clone();
    let report = running.ended().await;
    assert_eq!((report.revoked, report.parked, letters.stored().len()), (3, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn d15_what_a_paused_pool_holds_is_given_up() {
    let gate = Gate::new();
    gate.open();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(2, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.control.pool("default").unwrap().pause();
    running.broker.publish(0, events("a", 10));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(how(&running.broker.settled(0)), [REVOKED; 10], "those in a worker's hands, too");
    running.control.pool("default").unwrap().resume();
    let report = running.ended().await;
    assert!(gate.started().is_empty());
    assert_eq!((report.handled, report.revoked), (0, 10));
}

#[tokio::test(start_paused = true)]
async fn d15_what_waits_for_room_on_the_way_back_is_given_up() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let handler = HandlerConfig { loopback: 1, ..on(&["made"], gate.handler()) };
        engine
            .loopback(LoopbackConfig { on: vec!["back".parse().unwrap()], room: 2 })
            .pool("default", pool(4, 100))
            .handler("all", handler)
            .handler("back", on(&["back"], pass()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 10));
    a_while().await;
    assert_eq!(gate.started().len(), 2, "there is room for two on the way back");
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.settled(0).len(), 8);
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.revoked), (2, 8));
}

#[tokio::test(start_paused = true)]
async fn d15_a_partition_is_paused_drained_and_resumed_while_others_go_on() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(4, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 3));
    a_while().await;
    let drained = running.control.drain_partition("broker", Partition(0)).unwrap();
    let is_drained = Arc::new(AtomicBool::new(false));
    let seen = is_drained.clone();
    let waits = tokio::spawn(async move {
        drained.await;
        seen.store(true, Ordering::SeqCst);
    });
    a_while().await;
    assert_eq!((running.broker.paused(), is_drained.load(Ordering::SeqCst)), (vec![0], false));
    running.broker.publish(0, events("later", 2));
    running.broker.publish(1, events("b", 2));
    gate.open();
    a_while().await;
    waits.await.unwrap();
    assert_eq!((running.broker.settled(0).len(), running.broker.settled(1).len()), (3, 2));
    assert!(running.partition(0).unwrap().is_paused);
    running.control.resume_partition("broker", Partition(0)).unwrap();
    a_while().await;
    assert_eq!((running.broker.settled(0).len(), running.broker.paused()), (5, vec![]));
    let unknown = running.control.pause_partition("nobody", Partition(0)).unwrap_err();
    assert!(unknown.to_string().contains("nobody"), "{unknown}");
    assert_eq!(running.ended().await.handled, 7);
}

#[tokio::test(start_paused = true)]
async fn d15_an_input_of_one_partition_is_paused_as_that() {
    let broker = Bench::new();
    let script = crate::engine::support::source::Script::of(events("a", 20));
    let given = script.given();
    let engine = broker.engine.pool("default", pool(1, 10)).handler("all", on(&["made"], pass()));
    let engine = engine.input_named("only", InputConfig::default(), Box::new(script));
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    control.pause_partition("only", Partition::ONLY).unwrap();
    let run = tokio::spawn(engine.run());
    a_while().await;
    assert_eq!(given.load(Ordering::Relaxed), 0);
    control.resume_partition("only", Partition::ONLY).unwrap();
    assert_eq!(checked(run.await.unwrap()).handled, 20);
}

/// An input of one partition that has room for one of four events at a time. Each is settled as
/// soon as its handler may end.
async fn narrow(open: &Arc<Semaphore>) -> (Control, JoinHandle<RunReport>) {
    let bytes = |n: u32| sized(n, "made", None, 400);
    let steps = [Step::Batch((0..4).map(bytes).map(Ok).collect()), Step::Never];
    let config = InputConfig { in_flight_bytes: 500, ..InputConfig::default() };
    let open = open.clone();
    let waits = handle(move |_, _| {
        let open = open.clone();
        async move {
            open.acquire().await.unwrap().forget();
            Ok(Outputs::None)
        }
    });
    let engine =
        Bench::new().engine.pool("default", pool(1, 10)).handler("all", on(&["made"], waits));
    let script = crate::engine::support::source::Script::new("only", steps);
    let engine = engine.input_named("only", config, Box::new(script)).build().await.unwrap();
    (engine.control(), tokio::spawn(engine.run()))
}

#[tokio::test(start_paused = true)]
async fn d15_an_input_of_one_partition_is_drained_once_what_waits_for_room_is_settled() {
    let open = Arc::new(Semaphore::new(0));
    let (control, run) = narrow(&open).await;
    a_while().await;
    let drained = control.drain_partition("only", Partition::ONLY).unwrap();
    open.add_permits(4);
    tokio::time::timeout(HANG, drained).await.expect("it is drained");
    assert_eq!(open.available_permits(), 0, "all four were handled");
    control.drain();
    assert_eq!(checked(run.await.unwrap()).handled, 4);
}

#[tokio::test(start_paused = true)]
async fn d15_a_partition_is_drained_no_more_once_its_run_is_over() {
    let (control, run) = narrow(&Arc::new(Semaphore::new(0))).await;
    a_while().await;
    let drained = control.drain_partition("only", Partition::ONLY).unwrap();
    control.stop_now();
    assert_eq!(checked(run.await.unwrap()).refused, 4);
    tokio::time::timeout(HANG, drained).await.expect("nothing of it is left");
}

/// Gives events with the answer that partitions are taken away, which its contract does not allow.
struct GivesWithRevoke {
    step: u32,
    /// The partition that these events are of, and the one that is taken away.
    given: Partition,
    revoked: Arc<Mutex<Vec<Partition>>>,
}

const TAKEN_AWAY: Partition = Partition(1);

impl Source for GivesWithRevoke {
    fn describe(&self) -> String {
        "gives with revoke".to_owned()
    }

    fn pull<'a>(
        &'a mut self,
        into: &'a mut Vec<Taken>,
    ) -> BoxFuture<'a, Result<Pull, SourceError>> {
        Box::pin(async move {
            self.step += 1;
            if self.step > 1 {
                return Ok(Pull::End);
            }
            for (position, event) in (1..).zip(events("a", 5)) {
                into.push(Taken { position, event: Ok(event) });
            }
            Ok(Pull::Revoke)
        })
    }

    fn replayable(&self) -> bool {
        true
    }

    fn is_partitioned(&self) -> bool {
        true
    }

    fn partition(&self) -> Partition {
        self.given
    }

    fn revoking(&mut self) -> Vec<Partition> {
        vec![TAKEN_AWAY]
    }

    fn revoked(&mut self, partition: Partition) {
        self.revoked.lock().push(partition);
    }
}

#[tokio::test(start_paused = true)]
async fn d15_what_comes_with_a_revocation_counts_to_its_own_partition() {
    for (given, handled) in [(Partition(0), 5), (TAKEN_AWAY, 1)] {
        let (gate, revoked) = (Gate::new(), Arc::default());
        let source = GivesWithRevoke { step: 0, given, revoked: Arc::clone(&revoked) };
        let bench = Bench::new().set(|engine| {
            let engine = engine.input_named("broker", InputConfig::default(), Box::new(source));
            engine.pool("default", pool(1, 100)).handler("all", on(&["made"], gate.handler()))
        });
        let engine = bench.engine.build().await.unwrap();
        let run = tokio::spawn(engine.run());
        a_while().await;
        assert_eq!((gate.started().len(), &*revoked.lock()), (1, &vec![TAKEN_AWAY]));
        gate.open();
        let report = checked(run.await.unwrap());
        assert_eq!((report.taken, report.handled), (5, handled), "of {given}: {report:?}");
        assert_eq!((report.revoked, report.refused), (5 - handled, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn d15_bytes_of_a_revoked_partition_are_given_back_and_the_others_have_its_share() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 30)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { in_flight_bytes: 100 << 10, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    let large = |prefix: &str| -> Vec<Event> {
        (0..200)
            .map(|n| sized(format!("{prefix}{n}"), "made", Some(&n.to_string()), 1 << 10))
            .collect()
    };
    // Queued, beside the pool, and waiting for room in the budget.
    running.broker.publish(0, large("a"));
    a_while().await;
    running.broker.publish(1, large("b"));
    a_while().await;
    let full = running.partition(0).unwrap();
    assert!(full.in_flight_bytes > 40 << 10 && full.held_back > 0, "{full:?}");
    assert_eq!(gate.started(), ["a0"]);
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.revoked(), [0]);
    assert_eq!(running.broker.open(0), 1, "one is in hand");
    let (input, other) = (running.control.input_views().remove(0), running.partition(1).unwrap());
    assert_eq!(input.in_flight_bytes, other.in_flight_bytes, "{input:?}");
    assert_eq!((input.in_flight_limit, other.in_flight_limit), (100 << 10, 100 << 10));
    assert!(other.in_flight_bytes > 90 << 10, "it has the whole now: {other:?}");
    gate.open();
    let report = running.ended().await;
    assert_eq!((report.handled, report.refused), (201, 0), "{report:?}");
    assert_eq!(report.taken, report.handled + report.revoked);
}

#[tokio::test(start_paused = true)]
async fn d15_the_order_of_a_key_is_audited_across_a_revocation() {
    // In one go: what succeeds behind one that is to be tried again leaves before it.
    let (gate, disorder) = (Gate::new(), Arc::new(AtomicBool::new(false)));
    let handler = InOneGo { gate: gate.clone(), disorder: disorder.clone() };
    let batches = Some(greenroom::batch::Batches::of(2));
    let bench = Bench::new().set(|engine| {
        engine
            .pool("default", PoolConfig { batches, ..pool(1, 100) })
            .handler("all", on(&["made"], Arc::new(handler)))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, of_key("a", 6));
    a_while().await;
    running.broker.revoke(0);
    a_while().await;
    running.broker.assign(0);
    a_while().await;
    // One event of the assignment before, then those of the next: nothing has left out of order.
    gate.open.add_permits(2);
    a_while().await;
    assert_eq!(running.broker.open(0), 6, "of the first assignment all are settled");
    disorder.store(true, Ordering::SeqCst);
    gate.open();
    let (broker, run) = (running.broker.clone(), running.run);
    broker.end();
    let report = run.await.unwrap();
    assert!(report.adds_up() && report.handled >= 6, "{report:?}");
    assert!(report.out_of_order > 0, "it looks at the next assignment as well: {report:?}");
}

/// Handles batches as a whole. Where there is to be disorder, the first of one is tried again.
#[derive(Clone)]
struct InOneGo {
    gate: Gate,
    disorder: Arc<AtomicBool>,
}

impl HandlerFactory for InOneGo {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for InOneGo {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(async {
            self.gate.open.acquire().await.unwrap().forget();
            Ok(Outputs::Same)
        }))
    }

    fn handle_all<'a>(
        &'a mut self,
        events: &'a [(&'a Event, Attempt)],
    ) -> BoxFuture<'a, Vec<HandlerResult>> {
        Box::pin(async move {
            self.gate.open.acquire_many(events.len() as u32).await.unwrap().forget();
            let is_wrong = events.len() > 1 && self.disorder.load(Ordering::SeqCst);
            let result = |(place, (_, attempt)): (usize, &(&Event, Attempt))| match is_wrong
                && place == 0
                && attempt.number == 1
            {
                true => Err(Failure::retry("not yet")),
                false => Ok(Outputs::Same),
            };
            events.iter().enumerate().map(result).collect()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn d15_r02_a_change_while_partitions_come_and_go_holds_for_all_of_them() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 5)).handler("all", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 30));
    running.broker.publish(1, events("b", 30));
    a_while().await;
    let changed = running
        .control
        .apply(&[("default", pool(4, 50))], &[("all", on(&["made"], gate.handler()))]);
    assert_eq!(changed.unwrap(), ["pools.default.workers", "pools.default.queue"]);
    a_while().await;
    assert_eq!(gate.started().len(), 4);
    running.broker.revoke(0);
    a_while().await;
    assert_eq!(running.broker.revoked(), [0], "also while a larger queue holds its events");
    let changed = running
        .control
        .apply(&[("default", pool(1, 5))], &[("all", on(&["made"], gate.handler()))]);
    assert_eq!(changed.unwrap().len(), 2);
    running.broker.assign(0);
    a_while().await;
    gate.open();
    running.broker.until(|broker| broker.undone(0).is_empty() && broker.undone(1).is_empty()).await;
    let report = running.ended().await;
    assert_eq!(report.handled + report.revoked, report.taken, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d15_g01_a_partitioned_input_is_removed_with_all_its_partitions_and_comes_again() {
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        engine
            .input_named("stays", InputConfig::default(), Box::new(stays))
            .pool("default", pool(1, 100))
            .handler("all", on(&["made"], slow(ms(100))))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", 10));
    running.broker.publish(1, events("b", 10));
    a_while().await;
    running.broker.revoke(1);
    a_while().await;
    let removal = running.control.remove_input("broker").unwrap();
    running.broker.publish(0, events("later", 10));
    assert_eq!(removal.done().await.taken, running.broker.given(0) + running.broker.given(1));
    assert_eq!((running.broker.open(0), running.broker.open(1)), (0, 0));
    running.broker.assign(1);
    let again = running.broker.source();
    running
        .control
        .add_input("broker", InputConfig::default(), again)
        .map_err(|error| error.why)
        .unwrap();
    running.broker.until(|broker| broker.undone(0).is_empty() && broker.undone(1).is_empty()).await;
    assert_eq!(running.control.input_views()[1].partitions.len(), 2);
    running.control.drain();
    let report = checked(running.run.await.unwrap());
    assert_eq!((report.refused, report.handled + report.revoked), (0, report.taken));
}

/// What the gate holds is in hand for as long as the test wants.
async fn held(events_of_each: usize) -> (Running, Gate) {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 10)).handler("held", on(&["made"], gate.handler()))
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(0, events("a", events_of_each));
    running.broker.publish(1, events("b", events_of_each));
    a_while().await;
    (running, gate)
}

#[tokio::test(start_paused = true)]
async fn d08_a_partition_says_what_is_in_flight_that_it_is_paused_and_when_it_was_settled_last() {
    let (running, gate) = held(40).await;
    let settled = |partition| running.partition(partition).unwrap().last_settled;
    let in_flight = |partition| running.partition(partition).unwrap().in_flight_bytes;
    assert_eq!((settled(0), settled(1)), (None, None));
    let before = [in_flight(0), in_flight(1)];
    assert!(before[0] > 0);
    gate.open.add_permits(1);
    a_while().await;
    let (one, other) = if settled(0).is_some() { (0, 1) } else { (1, 0) };
    assert!(settled(one).is_some_and(|ago| ago <= ms(500)), "{:?}", settled(one));
    assert!(in_flight(one) < before[one as usize]);
    tokio::time::sleep(ms(10_000)).await;
    assert!(settled(one).is_some_and(|ago| (ms(10_000)..=ms(10_500)).contains(&ago)));
    assert_eq!(settled(other), None);
    assert_eq!(running.control.input_views()[0].last_settled, settled(one));
    running.control.pause_partition("broker", Partition(1)).unwrap();
    a_while().await;
    assert!(running.partition(1).unwrap().is_paused && !running.partition(0).unwrap().is_paused);
    running.control.resume_partition("broker", Partition(1)).unwrap();
    gate.open();
    running.ended().await;
}

#[tokio::test(start_paused = true)]
async fn d11_a_source_of_partitions_is_asked_until_its_run_has_drained() {
    let (running, gate) = held(40).await;
    let Running { broker, control, run, .. } = running;
    control.drain();
    a_while().await;
    assert!(broker.is_asked() && !run.is_finished(), "an event is in hand");
    let open = || broker.undone(0).len() + broker.undone(1).len();
    assert_eq!(control.progress().settled, 79, "the others were given back at once");
    assert_eq!(broker.paused(), [0, 1]);
    broker.publish(0, events("later", 5));
    broker.revoke(1);
    a_while().await;
    assert_eq!((broker.revoked(), broker.given(0)), (vec![1], 40), "one is taken away meanwhile");
    broker.publish(2, events("new", 5));
    a_while().await;
    assert!(broker.is_asked());
    assert_eq!(broker.paused(), [0, 1, 2], "one that is new is not taken");
    gate.open();
    let report = checked(run.await.unwrap());
    assert_eq!((report.taken, report.handled, report.given_back), (80, 1, 79));
    assert!(report.is_clean(), "{report:?}");
    assert!(!broker.is_asked());
    assert_eq!(broker.committed(0).next(), 41, "its last positions were stored");
    assert_eq!(open(), 79 + 5, "the next owner has them, and what came later");
    assert_eq!(broker.undone(2), [1, 2, 3, 4, 5]);
    assert_eq!(broker.misuse(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn d11_a_source_of_partitions_is_asked_until_what_was_removed_is_stored() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        let engine = engine.input_named("stays", InputConfig::default(), Box::new(stays));
        engine.pool("default", pool(1, 10)).handler("held", on(&["made"], gate.handler()))
    });
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    broker.publish(0, events("a", 5));
    a_while().await;
    let removal = control.remove_input("broker").unwrap();
    a_while().await;
    assert!(broker.is_asked(), "an event of it is in hand");
    gate.open();
    assert_eq!(removal.done().await.taken, 5);
    tokio::task::yield_now().await;
    assert!(!broker.is_asked());
    assert_eq!(broker.committed(0).next(), 6);
    control.drain();
    checked(run.await.unwrap());
}

/// A member that is not asked is counted out by its broker, and another one is given what is in
/// hand here.
#[tokio::test(start_paused = true)]
async fn d11_a_source_that_an_event_has_stopped_is_asked_until_the_others_are_stored() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        let engine = engine.input_named("stays", InputConfig::default(), Box::new(stays));
        let fatal = handle(|_, _| async { Err(Failure::new(FailureKind::Fatal, "no licence")) });
        engine
            .pool("default", pool(1, 10))
            .pool("other", pool(1, 10))
            .handler("held", on(&["made"], gate.handler()))
            .handler("fatal", HandlerConfig { pool: "other".into(), ..on(&["bad"], fatal) })
    });
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    broker.publish(0, events("a", 5));
    broker.publish(0, vec![event("bad", "bad", None)]);
    a_while().await;
    assert!(broker.is_asked(), "an event of it is in hand");
    assert_eq!(broker.paused(), [0]);
    gate.open();
    a_while().await;
    assert!(!broker.is_asked());
    assert!(broker.undone(0).iter().all(|position| *position == 6), "{:?}", broker.undone(0));
    control.drain();
    let report = run.await.unwrap();
    assert!(report.adds_up() && report.errors[0].contains("no licence"), "{report:?}");
}

/// What came back in is still of the input that read the event which it was made of.
#[tokio::test(start_paused = true)]
async fn d05_d15_a_fatal_failure_on_the_way_back_stops_its_input_after_a_revocation_too() {
    let gate = Gate::new();
    let waits = gate.clone();
    let fatal = handle(move |event, _| {
        let gate = waits.clone();
        async move {
            gate.started.lock().push(event.id().to_owned());
            gate.open.acquire().await.unwrap().forget();
            Err(Failure::new(FailureKind::Fatal, "no licence"))
        }
    });
    let sends = handle(|_, _| async { Ok(Outputs::Events(vec![event("b", "back", None)])) });
    let bench = Bench::new().set(|engine| {
        let stays = crate::engine::support::source::Script::new("stays", [Step::Never]);
        engine
            .input_named("stays", InputConfig::default(), Box::new(stays))
            .loopback(LoopbackConfig { on: vec!["back".parse().unwrap()], room: 2 })
            .pool("default", pool(4, 100))
            .handler("sends", HandlerConfig { loopback: 1, ..on(&["made"], sends) })
            .handler("fatal", on(&["back"], fatal))
    });
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    broker.publish(0, events("a", 1));
    a_while().await;
    assert_eq!(gate.started(), ["b"]);
    broker.revoke(0);
    a_while().await;
    assert!(broker.is_asked(), "it is in a worker's hands");
    gate.open();
    a_while().await;
    assert!(!broker.is_asked());
    control.drain();
    let report = run.await.unwrap();
    assert!(report.adds_up() && report.errors[0].contains("no licence"), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn d11_a_run_that_is_stopped_now_asks_its_source_for_nothing() {
    let (running, _gate) = held(40).await;
    let Running { broker, control, run, .. } = running;
    control.drain();
    a_while().await;
    control.stop_now();
    let report = run.await.unwrap();
    assert_eq!((report.taken, report.given_back, report.refused), (80, 79, 1));
    assert!(!broker.is_asked());
}

/// Where dead letters cannot be stored, no partition gives anything, and the source is asked all
/// the same.
#[tokio::test(start_paused = true)]
async fn d11_a_source_of_partitions_is_asked_while_dead_letters_have_no_room() {
    let slow = Behaviour { latency: Duration::from_secs(3_600), ..Behaviour::default() };
    let bench = Bench::with(MemorySink::new(Behaviour::default()), MemoryLetters::new(slow));
    let bench = bench.set(|engine| engine.handler("all", on(&["made"], pass())));
    let Running { broker, control, run, .. } = Running::new(InputConfig::default(), bench).await;
    for _ in 0..12_000 {
        broker.publish_malformed(0, "{ torn");
    }
    broker.publish(1, events("b", 1));
    broker.until(|broker| broker.given(0) >= 10_000).await;
    a_while().await;
    assert!(broker.is_asked() && broker.given(0) < 12_000);
    assert_eq!(broker.paused(), [0, 1]);
    broker.revoke(1);
    a_while().await;
    assert_eq!(broker.revoked(), [1], "its broker is answered");
    control.stop_now();
    run.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn d15_each_partition_says_its_positions_its_epoch_its_lag_and_what_is_open_longest() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        engine.pool("default", pool(1, 5)).handler("all", on(&["made"], gate.handler()))
    });
    let config = InputConfig { run_ahead: 8, ..InputConfig::default() };
    let running = Running::new(config, bench).await;
    running.broker.skip(0, 3);
    running.broker.publish(0, of_key("a", 40));
    a_while().await;
    let standing = running.partition(0).unwrap().standing.unwrap();
    let given = running.broker.given(0);
    assert_eq!((standing.oldest_open, standing.next), (4, 4 + given));
    assert_eq!(standing.lag, Some(40 - given), "what it was not asked for");
    gate.open.add_permits(2);
    a_while().await;
    assert_eq!(running.partition(0).unwrap().standing.unwrap().oldest_open, 6);
    running.broker.revoke(0);
    a_while().await;
    assert!(running.partition(0).is_none());
    running.broker.assign(0);
    gate.open();
    a_while().await;
    let again = running.partition(0).unwrap().standing.unwrap();
    assert!(again.epoch > standing.epoch, "another assignment: {again:?}");
    assert_eq!((again.oldest_open, again.next, again.lag), (44, 44, Some(0)));
    let report = running.ended().await;
    let [last] = report.positions[0].partitions[..] else { panic!("one partition") };
    let (stored, not_stored) = (last.ahead.stored, last.ahead.not_stored);
    assert_eq!((stored, not_stored), (38, 0), "by the last commit");
    assert_eq!(last, PartitionStanding { ahead: last.ahead, ..again });
}

#[tokio::test(start_paused = true)]
async fn d15_c13_why_says_of_which_partitions_the_events_of_a_key_are() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let beside = HandlerConfig { fan_out: true, ..on(&["made"], gate.handler()) };
        engine.pool("default", pool(2, 100)).handler("one", beside.clone()).handler("two", beside)
    });
    let running = Running::new(InputConfig::default(), bench).await;
    running.broker.publish(3, of_key("k", 2));
    running.broker.publish(1, of_key("k", 5));
    running.broker.publish(2, of_key("other", 4));
    a_while().await;
    let of = |key: &str| -> Vec<Vec<(u32, u64)>> {
        let why = running.control.why(key).into_iter();
        let each = |view: greenroom_bus::engine::KeyView| {
            let of =
                view.partitions.iter().map(|of| (of.partition.0, of.unsettled)).collect::<Vec<_>>();
            assert_eq!(of.iter().map(|(_, events)| events).sum::<u64>(), view.unsettled);
            of
        };
        why.map(each).collect()
    };
    assert_eq!(of("k"), [[(1, 5), (3, 2)], [(1, 5), (3, 2)]], "with each handler");
    assert_eq!(of("other"), [[(2, 4)], [(2, 4)]]);
    running.broker.revoke(1);
    a_while().await;
    let left = of("k").remove(0);
    let in_hand = u64::from(left.len() == 2);
    assert_eq!(left.iter().map(|(_, events)| events).sum::<u64>(), 2 + in_hand, "{left:?}");
    gate.open();
    a_while().await;
    assert!(of("k").is_empty());
    checked(running.ended().await);
}

#[tokio::test(start_paused = true)]
async fn d15_c13_of_an_input_of_one_partition_why_names_none() {
    let gate = Gate::new();
    let bench = Bench::new().set(|engine| {
        let script = crate::engine::support::source::Script::of(of_key("k", 3)).then(Step::Never);
        let engine = engine.input_named("only", InputConfig::default(), Box::new(script));
        engine.pool("default", pool(2, 100)).handler("all", on(&["made"], gate.handler()))
    });
    let engine = bench.engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    a_while().await;
    let why = control.why("k");
    assert_eq!((why[0].unsettled, why[0].partitions.len()), (3, 0));
    control.stop_now();
    checked(run.await.unwrap());
}

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
