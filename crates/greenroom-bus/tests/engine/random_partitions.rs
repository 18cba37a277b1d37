//! Random engines on virtual time that read from a broker whose partitions come and go (D15), with
//! repeats and gaps: whatever is taken away, fails, waits or is paused, every delivery has one
//! outcome, nothing of a revoked assignment is started after that was answered, a key has one
//! owner, no commit covers what is not done, and that is handled once its partition comes back.
//!
//! `GREENROOM_PROGRAMS` and `GREENROOM_SEED` are as for the other random engines.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use greenroom::{Restarts, batch::Batches};
use greenroom_bus::{
    dead_letter::Reason,
    engine::{Control, Decision, EngineBuilder, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
    settlement::{Refusal, Settled},
    source::Partition,
    watermark::Epoch,
};
use greenroom_test::{
    partitioned::{Broker, BrokerOptions, Delivery},
    programs::{in_a_thread, try_all},
};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::sleep;

use crate::engine::support::{
    Bench, HANG, checked, event,
    handlers::handle,
    letters::{Letter, MemoryLetters},
    ms, on,
    sink::{Behaviour, MemorySink},
};

const PARTITIONS: u32 = 3;

/// More bytes than any program has in flight.
const PLENTY: u64 = 64 << 20;

/// What becomes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Passes,
    /// So many attempts fail.
    Fails(u32),
    Rejects,
    Parks,
    Panics,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    key: u8,
    latency: u64,
    deed: Deed,
}

#[derive(Debug, Clone)]
enum Step {
    Give(u32, Vec<Item>),
    /// Takes a partition away, and gives it back after this long.
    Revoke(u32, u64),
    /// Gives so many of its events again, but for those that are done or in hand.
    Repeat(u32, usize),
    Pause(u32),
    Resume(u32),
    /// The pool, for this long.
    PausePool(u64),
    Wait(u64),
}

#[derive(Debug, Clone)]
struct Program {
    workers: usize,
    queue: usize,
    run_ahead: usize,
    bytes: u64,
    ordered: bool,
    batches: bool,
    broker: BrokerOptions,
    /// The output rejects events for good, or fails at them for now.
    sink: Behaviour,
    steps: Vec<Step>,
}

fn sink() -> impl Strategy<Value = Behaviour> {
    let one_of = || prop::option::weighted(0.4, 2..10_u32);
    let latency = prop_oneof![2 => Just(0), 1 => 1..30_u64];
    (latency, one_of(), one_of()).prop_map(|(latency, rejects, stumbles)| Behaviour {
        latency: ms(latency),
        rejects,
        stumbles,
        ..Behaviour::default()
    })
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => Just(Deed::Passes),
        3 => (1..4_u32).prop_map(Deed::Fails),
        1 => Just(Deed::Rejects),
        1 => Just(Deed::Parks),
        1 => Just(Deed::Panics),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    let latency = prop_oneof![3 => Just(0), 3 => 1..20_u64, 1 => 20..400_u64];
    (0..4_u8, latency, deed()).prop_map(|(key, latency, deed)| Item { key, latency, deed })
}

fn step() -> impl Strategy<Value = Step> {
    let partition = 0..PARTITIONS;
    prop_oneof![
        5 => (partition.clone(), prop::collection::vec(item(), 1..30))
            .prop_map(|(partition, items)| Step::Give(partition, items)),
        3 => (partition.clone(), 0..300_u64).prop_map(|(partition, after)| Step::Revoke(partition, after)),
        1 => (partition.clone(), 1..20_usize)
            .prop_map(|(partition, events)| Step::Repeat(partition, events)),
        1 => partition.clone().prop_map(Step::Pause),
        1 => partition.prop_map(Step::Resume),
        1 => (1..100_u64).prop_map(Step::PausePool),
        5 => (0..60_u64).prop_map(Step::Wait),
    ]
}

fn broker() -> impl Strategy<Value = BrokerOptions> {
    let likely = || prop_oneof![Just(0.0), Just(0.2)];
    (any::<u64>(), 1..20_usize, likely(), likely())
        .prop_map(|(seed, batch, gaps, repeats)| BrokerOptions { seed, batch, gaps, repeats })
}

fn program() -> impl Strategy<Value = Program> {
    // With plenty of bytes, no event is refused behind parked keys.
    let bytes = prop_oneof![200..20_000_u64, Just(PLENTY)];
    let sizes = (1..5_usize, 1..30_usize, 1..40_usize, bytes);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.3));
    (sizes, flags, broker(), sink(), prop::collection::vec(step(), 1..25)).prop_map(
        |((workers, queue, run_ahead, bytes), (ordered, batches), broker, sink, steps)| Program {
            workers,
            queue,
            run_ahead,
            bytes,
            ordered,
            batches,
            broker,
            sink,
            steps,
        },
    )
}

/// Which event it is: its partition and its number there, over all deliveries of it.
type Which = (u32, u64);

struct World {
    items: Mutex<HashMap<Which, Item>>,
    /// How many were published of each partition.
    published: Mutex<[u64; PARTITIONS as usize]>,
    seen: Mutex<Seen>,
    broker: Broker,
}

#[derive(Default)]
struct Seen {
    in_hand: HashSet<(u32, u8)>,
    /// The number of the last event of a key that was begun in each assignment.
    last: HashMap<(u32, Epoch, u8), u64>,
    violations: Vec<String>,
}

/// `partition-number`.
fn which(event: &Event) -> Which {
    let (partition, number) = event.id().split_once('-').unwrap();
    (partition.parse().unwrap(), number.parse().unwrap())
}

impl World {
    fn new(broker: Broker) -> Self {
        let (items, published, seen) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { items, published, seen, broker }
    }

    fn publish(&self, partition: u32, items: &[Item]) {
        for item in items {
            let number = &mut self.published.lock()[partition as usize];
            *number += 1;
            self.items.lock().insert((partition, *number), *item);
            let (id, key) = (format!("{partition}-{number}"), format!("{partition}/{}", item.key));
            self.broker.publish(partition, [event(id, "made", Some(&key))]);
        }
    }

    async fn handle(&self, program: &Program, event: Event, attempt: u32) -> HandlerResult {
        let (which, delivery) = (which(&event), *event.local::<Delivery>().unwrap());
        let item = self.items.lock()[&which];
        // A batch is in its handler's hands as a whole.
        if !program.batches && !self.broker.is_assigned(&delivery) {
            let what = format!("{delivery:?} was started after its assignment was revoked");
            self.seen.lock().violations.push(what);
        }
        let _in_hand =
            program.ordered.then(|| self.begin(which, delivery.epoch, item.key, attempt));
        if item.latency > 0 {
            sleep(ms(item.latency)).await;
        }
        match item.deed {
            Deed::Fails(times) if attempt <= times => Err(Failure::retry("not yet")),
            Deed::Rejects => Err(Failure::reject("never")),
            // Once: an operator lets it go on, or its next owner has more luck.
            Deed::Parks if attempt == 1 && program.bytes == PLENTY => {
                Err(Failure::new(FailureKind::Park, "ask somebody"))
            }
            Deed::Panics if attempt == 1 => panic!("on purpose"),
            _ => Ok(Outputs::Same),
        }
    }

    fn begin(&self, which: Which, epoch: Epoch, key: u8, attempt: u32) -> InHand<'_> {
        let (partition, number) = which;
        let mut seen = self.seen.lock();
        if !seen.in_hand.insert((partition, key)) {
            seen.violations.push(format!("key {key} of partition {partition} is in hand twice"));
        }
        let last = seen.last.entry((partition, epoch, key)).or_default();
        let (before, is_again) = (*last, attempt > 1);
        *last = number.max(before);
        if number < before && !is_again {
            seen.violations.push(format!("{which:?} came after {before} of its key"));
        }
        InHand { world: self, line: (partition, key) }
    }

    /// Nothing is under way, and everything was acknowledged.
    fn is_done(&self) -> bool {
        let is_done = |of| self.broker.undone(of).is_empty() && self.broker.open(of) == 0;
        (0..PARTITIONS).all(is_done)
    }

    /// Takes a partition away, and gives it back.
    async fn revoke(&self, partition: u32, after: u64) -> Result<(), TestCaseError> {
        let broker = &self.broker;
        let before = broker.revoked().len();
        broker.revoke(partition);
        let answer = broker.until(|broker| broker.revoked().len() > before);
        let answered = tokio::time::timeout(HANG, answer).await;
        prop_assert!(answered.is_ok(), "the revocation of {partition} was not answered");
        let (committed, undone) = (broker.committed(partition), broker.undone(partition));
        let covered: Vec<_> = undone.iter().filter(|at| committed.is_done(**at)).collect();
        prop_assert!(covered.is_empty(), "{covered:?} of {partition} are committed, and not done");
        sleep(ms(after)).await;
        broker.assign(partition);
        Ok(())
    }
}

/// Takes the key out of the handler's hands, however the attempt ends.
struct InHand<'a> {
    world: &'a World,
    line: (u32, u8),
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.world.seen.lock().in_hand.remove(&self.line);
    }
}

async fn run(program: &Program) -> Result<(), TestCaseError> {
    let world = Arc::new(World::new(Broker::new(program.broker)));
    let bench = Bench::with(MemorySink::new(program.sink), MemoryLetters::default());
    let letters = bench.letters.clone();
    let engine = engine(bench, program, &world).build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    for step in &program.steps {
        take(step, &world, &control).await?;
    }
    for partition in 0..PARTITIONS {
        control.resume_partition("broker", Partition(partition)).unwrap();
    }
    // Keys that were parked are let go on by an operator, again and again, until all is done.
    while !world.is_done() {
        sleep(ms(700)).await;
        for parked in control.parked() {
            control.decide(&parked.key, None, Decision::Resume);
        }
    }
    world.broker.end();
    let report = checked(run.await.unwrap());
    let seen = world.seen.lock();
    prop_assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    prop_assert!(report.is_clean(), "{report:?}");
    let letters = letters.stored();
    let rejected = letters.iter().filter(|letter| letter.reason == Reason::OutputRejected);
    let by_output = |letter: &Letter| {
        letter.event.as_ref().is_some_and(|event| program.sink.rejects(event.id()))
    };
    prop_assert!(rejected.clone().all(by_output), "{letters:?}");
    // The next owner of its partition has the others.
    prop_assert!(rejected.count() as u64 <= report.outputs[0].rejected, "{report:?}");
    prop_assert_eq!(world.broker.misuse(), [""; 0]);
    for partition in 0..PARTITIONS {
        let settled = world.broker.settled(partition);
        prop_assert_eq!(settled.len() as u64, world.broker.given(partition));
        let others = settled.iter().filter(|(_, how)| {
            !how.is_acknowledged() && *how != Settled::Refused(Refusal::Revoked)
        });
        prop_assert_eq!(others.count(), 0);
    }
    Ok(())
}

fn engine(bench: Bench, program: &Program, world: &Arc<World>) -> EngineBuilder {
    let handled = (world.clone(), Arc::new(program.clone()));
    let handler = handle(move |event, attempt| {
        let (world, program) = handled.clone();
        async move { world.handle(&program, event, attempt).await }
    });
    let handler = HandlerConfig {
        order_by: program.ordered.then(|| "subject".parse().unwrap()),
        ..on(&["made"], handler)
    };
    let pool = PoolConfig {
        workers: program.workers,
        queue: program.queue,
        // What waits behind a parked key is not refused.
        max_per_key: (program.bytes == PLENTY).then_some(10_000),
        batches: program.batches.then(|| Batches::of(3)),
        restarts: Restarts { max: u32::MAX, ..Restarts::default() },
        ..PoolConfig::default()
    };
    let config = InputConfig {
        run_ahead: program.run_ahead,
        in_flight_bytes: program.bytes,
        ..InputConfig::default()
    };
    let engine = bench.engine.pool("default", pool).handler("all", handler);
    engine.input_named("broker", config, world.broker.source())
}

async fn take(step: &Step, world: &World, control: &Control) -> Result<(), TestCaseError> {
    match step {
        Step::Give(partition, items) => world.publish(*partition, items),
        Step::Revoke(partition, after) => world.revoke(*partition, *after).await?,
        Step::Repeat(partition, events) => world.broker.repeat(*partition, *events),
        Step::Pause(partition) => {
            control.pause_partition("broker", Partition(*partition)).unwrap();
        }
        Step::Resume(partition) => {
            control.resume_partition("broker", Partition(*partition)).unwrap();
        }
        Step::PausePool(long) => {
            control.pool("default").unwrap().pause();
            sleep(ms(*long)).await;
            control.pool("default").unwrap().resume();
        }
        Step::Wait(long) => sleep(ms(*long)).await,
    }
    Ok(())
}

fn tried(program: Program) -> Result<(), TestCaseError> {
    in_a_thread(move |runtime| {
        runtime.block_on(async {
            let run = tokio::time::timeout(HANG, run(&program)).await;
            run.unwrap_or_else(|_| Err(TestCaseError::fail("it does not end")))
        })
    })
}

#[test]
fn d15_v01_partitions_come_and_go_and_every_event_is_done_once_they_are_back() {
    try_all(program, tried);
}
