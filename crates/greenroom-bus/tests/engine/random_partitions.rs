//! Random engines on virtual time that read from a broker whose partitions come and go (D15): whatever is taken away, fails, waits or is
//! paused, every delivery has one outcome, nothing of a revoked assignment is started after that was answered, a key has one owner,
//! and what was not done is handled once its partition comes back.
//!
//! `GREENROOM_PROGRAMS` and `GREENROOM_SEED` are as for the other random engines.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use greenroom::{Restarts, batch::Batches};
use greenroom_bus::{
    dead_letter::Reason,
    engine::{Decision, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{Failure, FailureKind, HandlerResult, Outputs},
    settlement::{Refusal, Settled},
    source::Partition,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::time::sleep;

use crate::support::{
    Bench, HANG, checked, event,
    handlers::handle,
    letters::{Letter, MemoryLetters},
    ms, on,
    partitioned::Broker,
    programs::{in_a_thread, try_all},
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
    /// Takes a partition away, and gives what was not done of it again after this long.
    Revoke(u32, u64),
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
        1 => partition.clone().prop_map(Step::Pause),
        1 => partition.prop_map(Step::Resume),
        1 => (1..100_u64).prop_map(Step::PausePool),
        5 => (0..60_u64).prop_map(Step::Wait),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    // With plenty of bytes, no event is refused behind parked keys.
    let bytes = prop_oneof![200..20_000_u64, Just(PLENTY)];
    let sizes = (1..5_usize, 1..30_usize, 1..40_usize, bytes);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.3));
    (sizes, flags, sink(), prop::collection::vec(step(), 1..25)).prop_map(
        |((workers, queue, run_ahead, bytes), (ordered, batches), sink, steps)| Program {
            workers,
            queue,
            run_ahead,
            bytes,
            ordered,
            batches,
            sink,
            steps,
        },
    )
}

/// Which event it is: its partition and its number there, over all deliveries of it.
type Which = (u32, u64);

#[derive(Default)]
struct World {
    items: Mutex<HashMap<Which, Item>>,
    seen: Mutex<Seen>,
    broker: Broker,
}

#[derive(Default)]
struct Seen {
    in_hand: HashSet<(u32, u8)>,
    /// The number of the last event of a key that was begun in each assignment.
    last: HashMap<(u32, u64, u8), u64>,
    violations: Vec<String>,
}

/// `partition-number-assignment`.
fn parts(event: &Event) -> (Which, u64) {
    let mut parts = event.id().split('-').map(|part| part.parse::<u64>().unwrap());
    let mut part = || parts.next().unwrap();
    ((part() as u32, part()), part())
}

impl World {
    /// What is to be delivered of an event in this assignment of its partition.
    fn delivery(&self, which: Which, assignment: u64) -> Event {
        let (partition, number) = which;
        let key = self.items.lock()[&which].key;
        event(
            format!("{partition}-{number}-{assignment}"),
            "made",
            Some(&format!("{partition}/{key}")),
        )
    }

    async fn handle(&self, program: &Program, event: Event, attempt: u32) -> HandlerResult {
        let ordered = program.ordered;
        let (which, assignment) = parts(&event);
        let item = self.items.lock()[&which];
        // A batch is in its handler's hands as a whole.
        if !program.batches {
            self.is_assigned(which, assignment);
        }
        let _in_hand = ordered.then(|| self.begin(which, assignment, item.key, attempt));
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

    fn is_assigned(&self, which: Which, assignment: u64) {
        let revoked = self.broker.revoked().iter().filter(|of| **of == which.0).count() as u64;
        if assignment < revoked {
            let what = format!(
                "{which:?} of assignment {assignment} was started after {revoked} revocations"
            );
            self.seen.lock().violations.push(what);
        }
    }

    fn begin(&self, which: Which, assignment: u64, key: u8, attempt: u32) -> InHand<'_> {
        let (partition, number) = which;
        let mut seen = self.seen.lock();
        if !seen.in_hand.insert((partition, key)) {
            seen.violations.push(format!("key {key} of partition {partition} is in hand twice"));
        }
        let last = seen.last.entry((partition, assignment, key)).or_default();
        let (before, is_again) = (*last, attempt > 1);
        *last = number.max(before);
        if number < before && !is_again {
            seen.violations.push(format!("{which:?} came after {before} of its key"));
        }
        InHand { world: self, line: (partition, key) }
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

/// What the broker has of each partition.
#[derive(Default)]
struct Log {
    /// Events made so far.
    made: u64,
    /// How often it was taken away.
    assignment: u64,
    /// Deliveries so far, in order: the position of each is its place here, from 1.
    delivered: Vec<u64>,
}

impl Log {
    /// Those that no delivery has seen done, in order.
    fn undone(&self, partition: u32, world: &World) -> Vec<u64> {
        let settled = world.broker.settled(partition);
        let done: HashSet<u64> = settled
            .iter()
            .filter(|(_, how)| how.is_acknowledged())
            .map(|(position, _)| self.delivered[*position as usize - 1])
            .collect();
        (1..=self.made).filter(|number| !done.contains(number)).collect()
    }
}

async fn run(program: &Program) -> Result<(), TestCaseError> {
    let world = Arc::new(World::default());
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
    let bench = Bench::with(MemorySink::new(program.sink), MemoryLetters::default());
    let letters = bench.letters.clone();
    let engine = bench.engine.pool("default", pool).handler("all", handler);
    let engine = engine.input_named("broker", config, world.broker.source());
    let engine = engine.build().await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let mut logs: BTreeMap<u32, Log> = BTreeMap::new();
    for step in &program.steps {
        match step {
            Step::Give(partition, items) => {
                let log = logs.entry(*partition).or_default();
                for item in items {
                    log.made += 1;
                    world.items.lock().insert((*partition, log.made), *item);
                    log.delivered.push(log.made);
                    let event = world.delivery((*partition, log.made), log.assignment);
                    world.broker.give(*partition, [event]);
                }
            }
            Step::Revoke(partition, after) => revoke(&world, &mut logs, *partition, *after).await?,
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
    }
    for partition in 0..PARTITIONS {
        control.resume_partition("broker", Partition(partition)).unwrap();
    }
    // Keys that were parked are let go on by an operator, again and again, until all is done.
    let is_done = |(partition, log): (&u32, &Log)| {
        world.broker.settled(*partition).len() == log.delivered.len()
    };
    while !logs.iter().all(is_done) {
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
    // Whoever has its partition next has the others.
    prop_assert!(rejected.count() as u64 <= report.outputs[0].rejected, "{report:?}");
    for (partition, log) in &logs {
        let settled = world.broker.settled(*partition);
        prop_assert_eq!(settled.len() as u64, world.broker.given(*partition));
        let undone = log.undone(*partition, &world);
        prop_assert!(undone.is_empty(), "{undone:?} of partition {partition}: {report:?}");
        let others = settled.iter().filter(|(_, how)| {
            !how.is_acknowledged() && *how != Settled::Refused(Refusal::Revoked)
        });
        prop_assert_eq!(others.count(), 0);
    }
    Ok(())
}

/// Takes a partition away. When it comes back, what no delivery has seen done is given again.
async fn revoke(
    world: &World,
    logs: &mut BTreeMap<u32, Log>,
    partition: u32,
    after: u64,
) -> Result<(), TestCaseError> {
    let before = world.broker.revoked().len();
    world.broker.revoke(partition);
    let answered = tokio::time::timeout(HANG, async {
        while world.broker.revoked().len() == before {
            sleep(ms(1)).await;
        }
    });
    prop_assert!(answered.await.is_ok(), "the revocation of {partition} was not answered");
    sleep(ms(after)).await;
    let log = logs.entry(partition).or_default();
    log.assignment += 1;
    // Whatever was not given is gone from the queue of the broker.
    log.delivered.truncate(world.broker.given(partition) as usize);
    for number in log.undone(partition, world) {
        log.delivered.push(number);
        let event = world.delivery((partition, number), log.assignment);
        world.broker.give(partition, [event]);
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
    try_all(&program(), tried);
}
