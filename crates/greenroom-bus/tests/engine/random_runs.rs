//! Random engines on virtual time: whatever sources, handlers, outputs, dead letters and stops do, every item has one
//! outcome, nothing is stored twice, and the events of a key are handled one at a time, in order.
//!
//! `GREENROOM_PROGRAMS` says how many engines to try; a failure prints the engine, made as small as possible.

mod program;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use greenroom::{Backoff, Restarts};
use greenroom_bus::{
    engine::{HandlerConfig, NoHandler, OnFull, OutageConfig, PoolConfig, Retry, RunReport},
    event::Event,
    handler::{Failure, FailureKind, HandlerFactory, HandlerResult, Outputs},
};
use proptest::prelude::*;

use self::program::{Deed, HANDLERS, Halt, Input, Item, Program, Row, TYPES, program};
use crate::support::{
    Bench, HANG, event,
    handlers::handle,
    letters::{Letter, MemoryLetters},
    ms,
    sink::{MemorySink, Stored},
    source::{Script, Step},
};

/// Where an event came from: its input and its position there.
type At = (usize, u64);

#[derive(Debug, Default)]
struct Seen {
    /// Lines whose event is in a handler's hands.
    in_hand: HashSet<(usize, usize, String)>,
    /// How often each event was given back unstarted.
    given_back: HashMap<At, u32>,
    violations: Vec<String>,
}

struct World {
    program: Program,
    deeds: HashMap<At, Deed>,
    seen: Mutex<Seen>,
}

/// Takes the line out of the handler's hands, however the attempt ends.
struct InHand<'a>(&'a World, Option<(usize, usize, String)>);

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.1.take() {
            self.0.seen.lock().unwrap().in_hand.remove(&line);
        }
    }
}

fn at(event: &Event) -> At {
    let mut parts = event.id().split('-');
    let mut part = || parts.next().unwrap().parse::<u64>().unwrap();
    (part() as usize, part())
}

impl World {
    fn item(&self, (input, position): At) -> Item {
        let items = self.program.inputs[input].batches.iter().flat_map(|(_, items)| items);
        *items.clone().nth(position as usize - 1).unwrap()
    }

    /// The line of an event: its input, its handler, and its key, where its handler keeps order.
    fn line(&self, at: At) -> Option<(usize, usize, String)> {
        let Item::Event { ty, key, .. } = self.item(at) else { return None };
        let handler = handler_of(ty)?;
        let key = key.filter(|_| self.program.rows[handler].ordered)?;
        Some((at.0, handler, key.to_string()))
    }

    fn take_in_hand(&self, at: At) -> InHand<'_> {
        let line = self.line(at);
        let mut seen = self.seen.lock().unwrap();
        if let Some(line) = &line
            && !seen.in_hand.insert(line.clone())
        {
            seen.violations.push(format!("{line:?} is in hand twice"));
        }
        InHand(self, line)
    }

    /// How often the event was given back before, counting one more.
    fn given_back(&self, at: At) -> u32 {
        let mut seen = self.seen.lock().unwrap();
        let times = seen.given_back.entry(at).or_default();
        *times += 1;
        *times - 1
    }

    async fn handle(&self, event: Event, attempt: u32) -> HandlerResult {
        let at = at(&event);
        let _in_hand = self.take_in_hand(at);
        let Item::Event { ms: latency, .. } = self.item(at) else { unreachable!() };
        if latency > 0 {
            tokio::time::sleep(ms(latency)).await;
        }
        let fails = |times, kind| match attempt <= times {
            true => Err(Failure::new(kind, "on purpose")),
            false => Ok(Outputs::Same),
        };
        match self.deeds[&at] {
            Deed::Pass => Ok(Outputs::Same),
            Deed::Nothing => Ok(Outputs::None),
            Deed::Several(count) => Ok(Outputs::Events(outputs(at, count))),
            Deed::Fail(times) => fails(times, FailureKind::Retry { after: None }),
            Deed::TimeOut(times) => fails(times, FailureKind::Timeout),
            Deed::Pause(times) => fails(times, FailureKind::Pause),
            Deed::Release(times) if self.given_back(at) < times => {
                Err(Failure::new(FailureKind::Released, "given back"))
            }
            Deed::Release(_) => Ok(Outputs::Same),
            Deed::Panic(times) if attempt <= times => panic!("on purpose"),
            Deed::Panic(_) => Ok(Outputs::Same),
            Deed::Reject => Err(Failure::reject("on purpose")),
            Deed::Crash => Err(Failure::new(FailureKind::Crash, "on purpose")),
            Deed::Never => std::future::pending().await,
        }
    }
}

fn outputs((input, position): At, count: u8) -> Vec<Event> {
    (0..count).map(|n| event(format!("{input}-{position}-{n}"), "made", None)).collect()
}

fn handler_of(ty: usize) -> Option<usize> {
    [Some(0), Some(0), Some(1), Some(2), None][ty]
}

fn script(input: &Input, place: usize) -> Script {
    let mut position = 0;
    let mut steps = Vec::new();
    for (wait, items) in &input.batches {
        if *wait > 0 {
            steps.push(Step::Wait(ms(*wait)));
        }
        let items = items.iter().map(|item| {
            position += 1;
            match *item {
                Item::Malformed => Err(b"{ torn".to_vec()),
                Item::Event { ty, key, .. } => {
                    let key = key.map(|key| key.to_string());
                    Ok(event(format!("{place}-{position}"), TYPES[ty], key.as_deref()))
                }
            }
        });
        steps.push(Step::Batch(items.collect()));
    }
    if input.fails {
        steps.push(Step::Fail);
    }
    Script::new(&format!("input-{place}"), steps)
}

fn handler(row: Row, on: &str, factory: Arc<dyn HandlerFactory>) -> HandlerConfig {
    HandlerConfig {
        pool: format!("pool-{}", row.pool),
        order_by: row.ordered.then(|| "subject".parse().unwrap()),
        key_required: row.key_required,
        retry: Some(Retry { attempts: 3, backoff: Backoff::new(ms(10), ms(100)), total: None }),
        ..HandlerConfig::new(vec![on.parse().unwrap()], factory)
    }
}

fn pool(program: &Program, row: Row) -> PoolConfig {
    let max = if program.fragile { 1 } else { 10_000 };
    let restarts =
        Restarts { max, window: Duration::from_secs(60), backoff: Backoff::new(ms(1), ms(10)) };
    let (workers, queue, on_full) = (row.workers, row.queue, row.on_full);
    // Every other one has the narrowest bound there is behind its keys.
    let max_per_key = queue.is_multiple_of(2).then_some(1);
    PoolConfig { workers, queue, on_full, max_per_key, restarts, ..PoolConfig::default() }
}

fn deeds(program: &Program) -> HashMap<At, Deed> {
    let mut deeds = HashMap::new();
    for (place, input) in program.inputs.iter().enumerate() {
        let items = input.batches.iter().flat_map(|(_, items)| items);
        for (number, item) in items.enumerate() {
            if let Item::Event { deed, .. } = item {
                deeds.insert((place, number as u64 + 1), *deed);
            }
        }
    }
    deeds
}

async fn halts(control: greenroom_bus::engine::Control, halt: Option<(u64, Halt)>) {
    let Some((after, how)) = halt else { return };
    tokio::time::sleep(ms(after)).await;
    match how {
        Halt::Drain => control.drain(),
        Halt::Now => control.stop_now(),
        Halt::DrainThenNow(later) => {
            control.drain();
            tokio::time::sleep(ms(later)).await;
            control.stop_now();
        }
    }
}

/// What a run left behind.
struct Remains {
    report: RunReport,
    stored: Vec<Stored>,
    letters: Vec<Letter>,
    pulled: u64,
}

async fn run(world: &Arc<World>) -> Remains {
    let program = &world.program;
    let mut bench = Bench::with(MemorySink::new(program.sink), MemoryLetters::new(program.letters));
    let mut given = Vec::new();
    for (place, input) in program.inputs.iter().enumerate() {
        let script = script(input, place);
        given.push(script.given());
        bench = bench.set(|engine| engine.input(Box::new(script)));
    }
    for (place, row) in program.rows.iter().enumerate() {
        bench = bench.set(|engine| engine.pool(format!("pool-{place}"), pool(program, *row)));
    }
    for ((name, on), row) in HANDLERS.iter().zip(program.rows) {
        let world = world.clone();
        let factory = handle(move |event, attempt| {
            let world = world.clone();
            async move { world.handle(event, attempt).await }
        });
        bench = bench.set(|engine| engine.handler(*name, handler(row, on, factory)));
    }
    let failures = if program.outages { 5 } else { u32::MAX };
    let window = Duration::from_secs(if program.outages { 10 } else { 1_000_000 });
    let outage = OutageConfig { failures, window, limit: Duration::from_secs(30) };
    let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
    let engine = bench.engine.outage(outage).no_handler(program.no_handler);
    let engine = engine.deadline(ms(program.deadline)).build().await.unwrap();
    let control = engine.control();
    let halting = tokio::spawn(halts(control, program.halt));
    let report = tokio::time::timeout(HANG, engine.run()).await.expect("the run did not end");
    halting.abort();
    let pulled = given.iter().map(|given| given.load(std::sync::atomic::Ordering::Relaxed)).sum();
    Remains { report, stored: sink.stored(), letters: letters.stored(), pulled }
}

impl World {
    fn check(&self, remains: &Remains) -> Result<(), TestCaseError> {
        let Remains { report, stored, letters, pulled } = remains;
        prop_assert!(report.adds_up(), "{report:?}");
        prop_assert_eq!(report.taken, *pulled);
        prop_assert_eq!(report.out_of_order, 0);
        prop_assert_eq!(&self.seen.lock().unwrap().violations, &Vec::<String>::new());
        prop_assert_eq!(report.dead_lettered, letters.len() as u64);
        prop_assert_eq!(report.dead_letters_by_reason.values().sum::<u64>(), report.dead_lettered);
        self.check_time(report)?;
        self.check_bounds(report)?;
        let dead = self.check_letters(letters)?;
        let emitted = self.check_stored(stored, &dead)?;
        if self.is_whole(report) {
            prop_assert_eq!(report.refused, 0, "{:?}", report);
            self.check_nothing_is_missing(report, &dead, &emitted)?;
        }
        Ok(())
    }

    /// True where no event may be refused.
    fn is_whole(&self, report: &RunReport) -> bool {
        let program = &self.program;
        let rejects = program.rows.iter().any(|row| row.on_full == OnFull::Reject);
        let outage = report.errors.iter().any(|error| error.contains("in outage"));
        let broken = report.errors.iter().any(|error| error.contains("full for good"));
        let refuses = rejects || matches!(program.no_handler, NoHandler::Refuse);
        program.halt.is_none() && !refuses && !outage && !broken
    }

    /// A run that was stopped returns within a second after its deadline.
    fn check_time(&self, report: &RunReport) -> Result<(), TestCaseError> {
        let most = match self.program.halt {
            Some((after, Halt::Drain)) => after + self.program.deadline + 1_000,
            Some((after, Halt::Now)) => after + 1_000,
            Some((after, Halt::DrainThenNow(later))) => {
                after + later.min(self.program.deadline) + 1_000
            }
            None => return Ok(()),
        };
        prop_assert!(report.elapsed <= ms(most), "{:?}", report.elapsed);
        Ok(())
    }

    /// What had started and waits for another attempt may exceed the bound by the workers.
    fn check_bounds(&self, report: &RunReport) -> Result<(), TestCaseError> {
        let rows = self.program.rows.iter();
        // The pool `default`, which nothing is for, is empty.
        let most: usize = rows.map(|row| row.queue + row.workers).sum();
        prop_assert!(report.peak_queued <= most as u64, "{} > {most}", report.peak_queued);
        Ok(())
    }

    /// Each letter once, with its event or its bytes.
    fn check_letters(&self, letters: &[Letter]) -> Result<BTreeSet<At>, TestCaseError> {
        let mut dead = BTreeSet::new();
        for letter in letters {
            prop_assert!(letter.event.is_some() != letter.raw.is_some(), "{letter:?}");
            let input = letter.source.strip_prefix("input-").unwrap().parse().unwrap();
            if let Some(event) = &letter.event {
                prop_assert_eq!(at(event), (input, letter.position));
            }
            prop_assert!(dead.insert((input, letter.position)), "twice: {letter:?}");
        }
        Ok(dead)
    }

    /// Each output once, those of one event side by side and in order, those of one line in the order of the input.
    fn check_stored(
        &self,
        stored: &[Stored],
        dead: &BTreeSet<At>,
    ) -> Result<HashMap<At, u8>, TestCaseError> {
        let mut last = HashMap::new();
        let mut count: HashMap<At, u8> = HashMap::new();
        for stored in stored {
            let at = at(&stored.event);
            prop_assert!(!dead.contains(&at), "{at:?} is a dead letter and was passed on");
            let before = count.entry(at).or_default();
            if let Some(number) = stored.event.id().split('-').nth(2) {
                prop_assert_eq!(number.parse::<u8>().unwrap(), *before, "{:?}", at);
            } else {
                prop_assert_eq!(*before, 0, "{:?} was passed on twice", at);
            }
            *before += 1;
            let Some(line) = self.line(at) else { continue };
            let previous = last.insert(line, at.1).unwrap_or(0);
            prop_assert!(previous <= at.1, "{at:?} after {previous}");
        }
        Ok(count)
    }

    fn check_nothing_is_missing(
        &self,
        report: &RunReport,
        dead: &BTreeSet<At>,
        emitted: &HashMap<At, u8>,
    ) -> Result<(), TestCaseError> {
        let mut ignored = 0;
        for (at, deed) in self.deeds.iter().filter(|(at, _)| !dead.contains(at)) {
            let Item::Event { ty, .. } = self.item(*at) else { unreachable!() };
            if handler_of(ty).is_none() {
                ignored += 1;
                continue;
            }
            let expected = match *deed {
                Deed::Nothing => 0,
                Deed::Several(count) => count,
                _ => 1,
            };
            prop_assert_eq!(emitted.get(at).copied().unwrap_or(0), expected, "{:?} {:?}", at, deed);
        }
        prop_assert_eq!(report.ignored, ignored);
        let malformed = self.program.inputs.iter().flat_map(|input| &input.batches);
        let items: usize = malformed.map(|(_, items)| items.len()).sum();
        prop_assert_eq!(report.taken, items as u64);
        Ok(())
    }
}

/// Runs a program in a thread of its own: one that spins without virtual time passing is found by the real clock.
fn tried(program: Program) -> Result<(), TestCaseError> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let deeds = deeds(&program);
        let world = Arc::new(World { program, deeds, seen: Mutex::default() });
        let remains = runtime.unwrap().block_on(run(&world));
        let _ = tell.send(world.check(&remains));
    });
    told.recv_timeout(Duration::from_secs(10))
        .map_err(|error| TestCaseError::fail(format!("the run hangs or panicked: {error}")))?
}

fn programs() -> u32 {
    std::env::var("GREENROOM_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: programs(), failure_persistence: None, max_shrink_time: 40_000, ..ProptestConfig::default() })]

    #[test]
    fn g08_m03_d02_every_event_has_one_outcome_and_keys_keep_their_order(program in program()) {
        std::panic::set_hook(Box::new(|_| {}));
        let result = tried(program);
        let _ = std::panic::take_hook();
        result?;
    }
}
