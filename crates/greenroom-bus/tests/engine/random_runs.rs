//! Random engines on virtual time: whatever sources, handlers, outputs, dead letters and stops
//! do, every item has one outcome, nothing is stored twice, and the events of a key are handled
//! one at a time, in order.
//!
//! While they run, engines are changed in every way that a running engine can be: workers, queues,
//! rates, limits, retries, pauses, shares; inputs and outputs come and go.
//!
//! `GREENROOM_PROGRAMS` says how many engines to try, and `GREENROOM_SEED` which ones; a failure
//! prints the seed, and the engine, made as small as possible. What is random inside an engine (the
//! spread of retries, who is polled first) follows no seed.

mod changes;
mod program;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use greenroom::{Backoff, FinalAction, Restarts, batch::Batches, shares::ShareLimits};
use greenroom_bus::{
    dead_letter::Reason,
    engine::{
        HandlerConfig, LoopbackConfig, NoHandler, OnFull, OutageConfig, PoolConfig, Retry,
        RunReport,
    },
    event::{Event, OrderBy},
    handler::{Failure, FailureKind, HandlerFactory, HandlerResult, Outputs},
    router::Matcher,
    watermark::Positions,
};
use greenroom_test::programs::{in_a_thread, try_all};
use proptest::prelude::*;

use self::{
    changes::{Changed, Changes, input_name},
    program::{By, Change, Deed, HANDLERS, Halt, Input, Item, NAMED, Program, Row, TYPES, program},
};
use crate::engine::{
    positions::{Keeping, Kept},
    support::{
        self, Bench, HANG, event,
        handlers::handle,
        letters::{Letter, MemoryLetters},
        ms,
        sink::{MemorySink, Stored},
        source::{Script, Step},
    },
};

/// Where an event came from: its input and its position there.
type At = (usize, u64);

#[derive(Debug, Default)]
struct Seen {
    /// Lines whose event is in a handler's hands.
    in_hand: HashSet<(usize, usize, String)>,
    /// How often each event was given back unstarted.
    given_back: HashMap<At, u32>,
    /// Attempts in hand, by pool and share.
    of_shares: HashMap<(usize, Option<String>), usize>,
    violations: Vec<String>,
}

struct World {
    program: Program,
    deeds: HashMap<At, Deed>,
    seen: Mutex<Seen>,
    started: tokio::time::Instant,
}

/// Takes the line out of the handler's hands, however the attempt ends.
struct InHand<'a> {
    world: &'a World,
    line: Option<(usize, usize, String)>,
    share: (usize, Option<String>),
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        let mut seen = self.world.seen.lock().unwrap();
        if let Some(line) = self.line.take() {
            seen.in_hand.remove(&line);
        }
        *seen.of_shares.get_mut(&self.share).unwrap() -= 1;
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

    /// The pool of an event's handler, and its share there.
    fn share(&self, at: At) -> Option<(usize, Option<String>)> {
        let Item::Event { ty, key, share, .. } = self.item(at) else { return None };
        let row = self.program.rows[handler_of(ty)?];
        let share = match row.share_by {
            By::Pool => share.filter(|_| self.program.rows[row.pool].sharing.is_some()),
            By::Key => key,
            By::Nothing => None,
        };
        Some((row.pool, share.map(|share| share.to_string())))
    }

    /// How much a share may have in hand, where that is not changed while it runs.
    fn cap(&self, (pool, share): &(usize, Option<String>)) -> Option<usize> {
        let changes = |change: &Change| matches!(change, Change::Defaults(at, _) | Change::Share(at, ..) if at == pool);
        let sharing = self.program.rows[*pool].sharing?;
        let limits = match share.as_deref() {
            Some(NAMED) => sharing.named,
            _ => sharing.limits,
        };
        let is_fixed = !self.program.changes.iter().any(|(_, change)| changes(change));
        // A cap of 0 is raised in the end.
        limits.most_in_hand().filter(|_| is_fixed).map(|most| most.max(1))
    }

    fn take_in_hand(&self, at: At) -> InHand<'_> {
        let (line, share) = (self.line(at), self.share(at).unwrap());
        let mut seen = self.seen.lock().unwrap();
        let in_hand = seen.of_shares.entry(share.clone()).or_default();
        *in_hand += 1;
        let in_hand = *in_hand;
        if self.has_shares(share.0) && self.cap(&share).is_some_and(|most| in_hand > most) {
            seen.violations.push(format!("{share:?} has {in_hand} in hand"));
        }
        if let Some(line) = &line
            && !seen.in_hand.insert(line.clone())
        {
            seen.violations.push(format!("{line:?} is in hand twice"));
        }
        InHand { world: self, line, share }
    }

    /// Whether a handler of this pool names shares.
    fn has_shares(&self, pool: usize) -> bool {
        let shares = self.program.rows[pool].sharing.is_some();
        self.program.rows.iter().filter(|row| row.pool == pool).any(|row| match row.share_by {
            By::Pool => shares,
            By::Key => true,
            By::Nothing => false,
        })
    }

    /// How often the event was given back before, counting one more.
    fn given_back(&self, at: At) -> u32 {
        let mut seen = self.seen.lock().unwrap();
        let times = seen.given_back.entry(at).or_default();
        *times += 1;
        *times - 1
    }

    /// Whether the target of the handler for this type is down now, for this share.
    fn is_down(&self, ty: usize, share: Option<u8>) -> bool {
        let Some((handler, from, until)) = self.program.down else { return false };
        let now = self.started.elapsed();
        handler_of(ty) == Some(handler)
            && (ms(from)..ms(until)).contains(&now)
            && self.program.down_for.is_none_or(|down| share == Some(down))
    }

    async fn handle(&self, event: Event, attempt: u32) -> HandlerResult {
        let at = at(&event);
        let _in_hand = self.take_in_hand(at);
        let Item::Event { ms: latency, ty, share, .. } = self.item(at) else { unreachable!() };
        if latency > 0 {
            tokio::time::sleep(ms(latency)).await;
        }
        if self.is_down(ty, share) {
            return Err(Failure::retry("nobody is there"));
        }
        let fails = |times, kind| match attempt <= times {
            true => Err(Failure::new(kind, "on purpose")),
            false => Ok(Outputs::Same),
        };
        match self.deeds[&at] {
            Deed::Pass => Ok(Outputs::Same),
            Deed::Nothing => Ok(Outputs::None),
            Deed::Several(count) => Ok(Outputs::Events(outputs(at, count))),
            Deed::Back if self.program.loopback.is_none() => Ok(Outputs::Same),
            Deed::Back => {
                let (input, position) = at;
                let id = format!("{input}-{position}-back");
                let key = event.subject().map(|key| &**key);
                Ok(Outputs::Events(vec![support::event(id, AGAIN, key)]))
            }
            Deed::Fail(times) => fails(times, FailureKind::Retry { after: None }),
            Deed::TimeOut(times) => fails(times, FailureKind::Timeout),
            Deed::Pause(times) => fails(times, FailureKind::Pause),
            Deed::Release(times) if self.given_back(at) < times => {
                Err(Failure::new(FailureKind::Released, "given back"))
            }
            Deed::Release(_) => Ok(Outputs::Same),
            Deed::Hold(times) => fails(
                times,
                FailureKind::HoldShare { after: times.is_multiple_of(2).then_some(ms(50)) },
            ),
            Deed::Gone if self.given_back(at) == 0 => {
                Err(Failure::new(FailureKind::PauseShare, "gone"))
            }
            Deed::Gone => Ok(Outputs::Same),
            Deed::Panic(times) if attempt <= times => panic!("on purpose"),
            Deed::Panic(_) => Ok(Outputs::Same),
            Deed::Reject => Err(Failure::reject("on purpose")),
            Deed::Crash => Err(Failure::new(FailureKind::Crash, "on purpose")),
            Deed::Never => std::future::pending().await,
        }
    }
}

/// What comes back in, and the handler for it.
const AGAIN: &str = "again";

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
                Item::Event { ty, key, share, .. } => {
                    let event = Event::builder(format!("{place}-{position}"), "test", TYPES[ty]);
                    let key = key.map(|key| key.to_string());
                    let event = key.into_iter().fold(event, |event, key| event.subject(key));
                    let share = share.map(|share| share.to_string()).into_iter();
                    let event = share.fold(event, |event, share| event.extension("tenant", share));
                    Ok(event.build().unwrap())
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

fn handler(row: Row, loopback: usize, on: &str, factory: Arc<dyn HandlerFactory>) -> HandlerConfig {
    HandlerConfig {
        pool: format!("pool-{}", row.pool),
        loopback,
        order_by: row.ordered.then(|| "subject".parse().unwrap()),
        share_by: match row.share_by {
            By::Pool => None,
            By::Key => Some("subject".parse().unwrap()),
            By::Nothing => Some(OrderBy::none()),
        },
        key_required: row.key_required,
        retry: Some(Retry { attempts: 3, backoff: Backoff::new(ms(10), ms(100)), total: None }),
        ..HandlerConfig::new(vec![on.parse().unwrap()], factory)
    }
}

/// How many events a handler gets at once, in pools with batches.
const BATCH: usize = 3;

fn pool(program: &Program, row: Row) -> PoolConfig {
    let max = if program.fragile { 1 } else { 10_000 };
    let restarts =
        Restarts { max, window: Duration::from_secs(60), backoff: Backoff::new(ms(1), ms(10)) };
    let (workers, queue, on_full) = (row.workers, row.queue, row.on_full);
    // Every other one has the narrowest bound there is behind its keys.
    let max_per_key = queue.is_multiple_of(2).then_some(1);
    let on_final_failure = if row.parks { FinalAction::ParkKey } else { FinalAction::DeadLetter };
    let sharing = row.sharing;
    PoolConfig {
        workers,
        queue,
        on_full,
        max_per_key,
        on_final_failure,
        restarts,
        batches: row.batches.then(|| Batches::of(BATCH)),
        share_by: sharing.map(|_| "tenant".parse().unwrap()),
        share_limits: sharing.map_or_else(ShareLimits::default, |sharing| sharing.limits),
        share_queue: sharing.and_then(|sharing| sharing.queue),
        on_share_full: sharing.and_then(|sharing| sharing.on_full),
        ..PoolConfig::default()
    }
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
    /// By output.
    stored: Vec<Vec<Stored>>,
    letters: Vec<Letter>,
    /// By input; of those that were added.
    pulled: Vec<u64>,
    /// What the last commit of each input says.
    kept: Vec<Positions>,
    changed: Changed,
}

async fn run(world: &Arc<World>) -> Remains {
    let program = &world.program;
    let mut bench = Bench::with(MemorySink::new(program.sink), MemoryLetters::new(program.letters));
    let (mut given, mut kept) = (Vec::new(), Vec::new());
    for (place, input) in program.inputs.iter().enumerate().filter(|(_, input)| !input.late) {
        let script = script(input, place);
        given.push(script.given());
        let (name, own) = (input_name(place, false), Kept::new(|_| {}));
        kept.push(own.clone());
        let source = Box::new(Keeping(script, own));
        bench = bench.set(|engine| engine.input_named(name, Matcher::any(), source));
    }
    if let Some(room) = program.loopback {
        let back = LoopbackConfig { room, ..LoopbackConfig::new(vec![AGAIN.parse().unwrap()]) };
        let again = handle(|event, _| async move { Ok(Outputs::Events(outputs(at(&event), 1))) });
        let again = handler(program.rows[0], 0, AGAIN, again);
        bench = bench.set(|engine| engine.loopback(back).handler(AGAIN, again));
    }
    for (place, row) in program.rows.iter().enumerate() {
        let name = format!("pool-{place}");
        bench = bench.set(|engine| {
            let engine = engine.pool(name.clone(), pool(program, *row));
            let named = row.sharing.into_iter().map(|sharing| sharing.named);
            named.fold(engine, |engine, named| engine.share(name.clone(), NAMED, named))
        });
    }
    for ((name, on), row) in HANDLERS.iter().zip(program.rows) {
        let world = world.clone();
        let factory = handle(move |event, attempt| {
            let world = world.clone();
            async move { world.handle(event, attempt).await }
        });
        let sends_back = usize::from(program.loopback.is_some());
        let handler = handler(row, sends_back, on, factory);
        bench = bench.set(|engine| engine.handler(*name, handler));
    }
    let failures = if program.outages { 5 } else { u32::MAX };
    let window = Duration::from_secs(if program.outages { 10 } else { 1_000_000 });
    let outage =
        OutageConfig { failures, window, limit: Duration::from_secs(30), per: program.per };
    let (sink, letters) = (bench.sink.clone(), bench.letters.clone());
    let engine = bench.engine.outage(outage).no_handler(program.no_handler);
    let engine = engine.deadline(ms(program.deadline)).build().await.unwrap();
    let control = engine.control();
    let halting = tokio::spawn(halts(control.clone(), program.halt));
    let (changes, changing) = (Changes::new(control, program, sink), world.clone());
    let changing = tokio::spawn(async move { changes.carry_out(&changing.program).await });
    let report = tokio::time::timeout(HANG, engine.run()).await.expect("the run did not end");
    // A store that was given up may go on by itself.
    let letters = letters.stored();
    halting.abort();
    let changed = changing.await.expect("a change panicked").end().await;
    given.extend(changed.given.iter().cloned());
    kept.extend(changed.kept.iter().cloned());
    let pulled = given.iter().map(|given| given.load(std::sync::atomic::Ordering::Relaxed));
    let stored = changed.sinks.iter().map(|(_, sink)| sink.stored()).collect();
    let (pulled, kept) = (pulled.collect(), kept.iter().map(Kept::last_if_any).collect());
    Remains { report, stored, letters, pulled, kept, changed }
}

impl World {
    fn check(&self, remains: &Remains) -> Result<(), TestCaseError> {
        let Remains { report, stored, letters, pulled, kept, changed } = remains;
        prop_assert!(report.adds_up(), "{report:?}");
        prop_assert_eq!(report.taken, pulled.iter().sum::<u64>());
        let taken: Vec<u64> = report.inputs.iter().map(|row| row.taken).collect();
        prop_assert_eq!(&taken, pulled);
        self.check_removed(changed)?;
        prop_assert_eq!(report.out_of_order, 0);
        prop_assert_eq!(&self.seen.lock().unwrap().violations, &Vec::<String>::new());
        prop_assert_eq!(report.dead_lettered, letters.len() as u64);
        prop_assert_eq!(report.dead_letters_by_reason.values().sum::<u64>(), report.dead_lettered);
        if !self.program.rows.iter().any(|row| row.parks) {
            prop_assert_eq!(report.parked, 0, "{:?}", report);
        }
        prop_assert!(report.parked == 0 || !report.is_clean(), "{report:?}");
        self.check_time(report)?;
        self.check_bounds(report)?;
        let (dead, rejected) = self.check_letters(letters)?;
        let open: u64 = kept.iter().map(Positions::count_open).sum();
        prop_assert_eq!(
            open,
            report.refused + report.given_back,
            "what is refused or given back is for a later run, and nothing else"
        );
        prop_assert!(self.program.halt.is_some() || report.given_back == 0, "{report:?}");
        let is_done = |(input, position): &At| kept[*input].is_done(*position);
        let stored_letters = dead.iter().chain(&rejected);
        prop_assert!(stored_letters.clone().all(is_done), "{dead:?}, {rejected:?} of {kept:?}");
        let emitted = self.check_stored(stored, &dead)?;
        if self.is_whole(report) {
            prop_assert!(changed.sinks.iter().all(|(_, sink)| !sink.is_misused()));
            prop_assert_eq!(report.refused + report.given_back, 0, "{:?}", report);
            self.check_nothing_is_missing(report, pulled, &dead, &emitted)?;
            self.check_rejected(pulled, &dead, &rejected)?;
            let handed = report.outputs.iter().map(|row| row.events - row.rejected);
            let handed: Vec<u64> = handed.collect();
            let kept: Vec<u64> = stored.iter().map(|stored| stored.len() as u64).collect();
            prop_assert_eq!(handed, kept);
            if !changed.removed {
                self.check_all_was_taken(report, pulled)?;
            }
        }
        Ok(())
    }

    /// What was removed says what it was, and an output that could store has
    /// stored all that it was handed.
    fn check_removed(&self, changed: &Changed) -> Result<(), TestCaseError> {
        prop_assert!(changed.inputs.iter().all(|row| row.removed));
        for row in &changed.outputs {
            let (_, sink) = changed.sinks.iter().find(|(name, _)| *name == row.name).unwrap();
            let done = sink.ids().len() as u64 + row.rejected;
            prop_assert!(row.removed && row.events >= done, "{row:?}");
            prop_assert!(!sink.is_misused(), "{row:?} was given something after its end");
            prop_assert!(row.error.is_some() || row.events == done, "{row:?}: {done}");
        }
        Ok(())
    }

    /// True where no event may be refused.
    fn is_whole(&self, report: &RunReport) -> bool {
        let program = &self.program;
        let rejects = program.rows.iter().any(|row| {
            let of_share = row.sharing.and_then(|sharing| sharing.on_full);
            row.on_full == OnFull::Reject || of_share == Some(OnFull::Reject)
        });
        let outage = report.errors.iter().any(|error| error.contains("in outage"));
        let broken = report.errors.iter().any(|error| error.contains("full for good"));
        let refuses = rejects || matches!(program.no_handler, NoHandler::Refuse);
        program.halt.is_none() && !refuses && !outage && !broken && report.parked == 0
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
        // What is parked takes no room.
        if self.program.rows.iter().any(|row| row.parks) {
            return Ok(());
        }
        // The pool `default`, which nothing is for, is empty.
        let most = self.program.rows.iter().enumerate().map(|(at, row)| {
            let changes = self.program.changes.iter().map(|(_, change)| *change);
            let (queue, workers) =
                changes.fold((row.queue, row.workers), |(queue, workers), change| match change {
                    Change::Queue(pool, events) if pool == at => (queue.max(events), workers),
                    Change::Workers(pool, most) if pool == at => (queue, workers.max(most)),
                    _ => (queue, workers),
                });
            queue + workers * if row.batches { BATCH } else { 1 }
        });
        let most: usize = most.sum();
        prop_assert!(report.peak_queued <= most as u64, "{} > {most}", report.peak_queued);
        Ok(())
    }

    /// Each letter once, with its event or its bytes: those of events that were given up, and those
    /// of which an output has rejected something.
    fn check_letters(
        &self,
        letters: &[Letter],
    ) -> Result<(BTreeSet<At>, BTreeSet<At>), TestCaseError> {
        let (mut dead, mut rejected) = (BTreeSet::new(), BTreeSet::new());
        for letter in letters {
            prop_assert!(letter.event.is_some() != letter.raw.is_some(), "{letter:?}");
            let from = match (&letter.event, letter.source.strip_prefix("input-")) {
                (Some(event), None) => at(event),
                (_, input) => (input.unwrap().parse().unwrap(), letter.position),
            };
            if let Some(event) = &letter.event {
                prop_assert_eq!(at(event), from);
                if event.ty() != AGAIN {
                    let share = self.share(from).and_then(|(_, share)| share);
                    prop_assert_eq!(letter.share.as_deref(), share.as_deref(), "{:?}", letter);
                }
            }
            prop_assert!(!dead.contains(&from) && !rejected.contains(&from), "twice: {letter:?}");
            let by_output = letter.reason == Reason::OutputRejected;
            if by_output { &mut rejected } else { &mut dead }.insert(from);
            prop_assert_eq!(by_output, !letter.rejected.is_empty());
            for one in &letter.rejected {
                let made = one.event.as_ref().or(letter.event.as_ref()).unwrap();
                prop_assert!(self.program.sink.rejects(made.id()), "{letter:?}");
            }
        }
        Ok((dead, rejected))
    }

    /// What a handler makes of an event, by its id.
    fn made(&self, at: At) -> Vec<String> {
        let (input, position) = at;
        match self.deeds[&at] {
            Deed::Nothing => Vec::new(),
            Deed::Several(count) => {
                outputs(at, count).iter().map(|made| made.id().into()).collect()
            }
            Deed::Back if self.program.loopback.is_some() => vec![format!("{input}-{position}-0")],
            _ => vec![format!("{input}-{position}")],
        }
    }

    /// Whatever an output rejects is a letter, and nothing else is.
    fn check_rejected(
        &self,
        pulled: &[u64],
        dead: &BTreeSet<At>,
        rejected: &BTreeSet<At>,
    ) -> Result<(), TestCaseError> {
        let taken = |at: &At| pulled.get(at.0).is_some_and(|pulled| at.1 <= *pulled);
        for at in self.deeds.keys().filter(|at| taken(at) && !dead.contains(at)) {
            let Item::Event { ty, .. } = self.item(*at) else { unreachable!() };
            let made = self.made(*at);
            let any = made.iter().any(|id| self.program.sink.rejects(id));
            prop_assert_eq!(rejected.contains(at), any && handler_of(ty).is_some(), "{:?}", at);
        }
        Ok(())
    }

    /// Each once, whichever output it is in; in each, those of one event in order, those of one
    /// line in the order of the input.
    fn check_stored(
        &self,
        outputs: &[Vec<Stored>],
        dead: &BTreeSet<At>,
    ) -> Result<HashMap<At, u8>, TestCaseError> {
        let mut seen: HashMap<At, BTreeSet<u8>> = HashMap::new();
        for stored in outputs {
            let (mut last, mut numbers) = (HashMap::new(), HashMap::new());
            for stored in stored {
                let at = at(&stored.event);
                prop_assert!(!dead.contains(&at), "{at:?} is a dead letter and was passed on");
                let number = stored.event.id().split('-').nth(2);
                let number: u8 = number.map_or(0, |number| number.parse().unwrap());
                prop_assert!(seen.entry(at).or_default().insert(number), "{at:?}: {number} twice");
                let before = numbers.insert(at, number);
                prop_assert!(before.is_none_or(|before| before < number), "{at:?}: {number}");
                // What came back has no order with what did not.
                let came_back =
                    self.program.loopback.is_some() && matches!(self.deeds[&at], Deed::Back);
                let Some(line) = self.line(at).filter(|_| !came_back) else { continue };
                let previous = last.insert(line, at.1).unwrap_or(0);
                prop_assert!(previous <= at.1, "{at:?} after {previous}");
            }
        }
        Ok(seen.into_iter().map(|(at, numbers)| (at, numbers.len() as u8)).collect())
    }

    fn check_nothing_is_missing(
        &self,
        report: &RunReport,
        pulled: &[u64],
        dead: &BTreeSet<At>,
        emitted: &HashMap<At, u8>,
    ) -> Result<(), TestCaseError> {
        let mut ignored = 0;
        let taken = |at: &At| pulled.get(at.0).is_some_and(|pulled| at.1 <= *pulled);
        for (at, deed) in self.deeds.iter().filter(|(at, _)| taken(at) && !dead.contains(at)) {
            let Item::Event { ty, .. } = self.item(*at) else { unreachable!() };
            if handler_of(ty).is_none() {
                ignored += 1;
                continue;
            }
            let made = self.made(*at);
            let stored = made.iter().filter(|id| !self.program.sink.rejects(id));
            let expected = stored.count() as u8;
            prop_assert_eq!(emitted.get(at).copied().unwrap_or(0), expected, "{:?} {:?}", at, deed);
        }
        prop_assert_eq!(report.ignored, ignored);
        Ok(())
    }

    /// Nobody has stopped an input that was added.
    fn check_all_was_taken(&self, report: &RunReport, pulled: &[u64]) -> Result<(), TestCaseError> {
        let added = self.program.inputs.iter().take(pulled.len());
        let batches = added.flat_map(|input| &input.batches);
        let items: usize = batches.map(|(_, items)| items.len()).sum();
        prop_assert_eq!(report.taken, items as u64);
        Ok(())
    }
}

impl World {
    /// A run that goes on from there: it is given what was not done, and does it.
    async fn go_on(&self, kept: &[Positions]) -> Result<(), TestCaseError> {
        let (mut bench, mut again) = (Bench::new(), Vec::new());
        for (place, stored) in kept.iter().enumerate() {
            let input = Input { fails: false, ..self.program.inputs[place].clone() };
            let own = Kept::from_stored(stored);
            let source = Box::new(Keeping(script(&input, place), own.clone()));
            let name = input_name(place, false);
            bench = bench.set(|engine| engine.input_named(name, Matcher::any(), source));
            again.push(own);
        }
        let seen = Arc::<Mutex<BTreeSet<At>>>::default();
        let sees = seen.clone();
        let all = handle(move |event, _| {
            sees.lock().unwrap().insert(at(&event));
            async { Ok(Outputs::None) }
        });
        let report =
            bench.set(|engine| engine.handler("all", support::on(&["**"], all))).run().await;
        prop_assert!(report.is_clean(), "{report:?}");
        let undone = |at: &&At| kept.get(at.0).is_some_and(|kept| !kept.is_done(at.1));
        let expected: BTreeSet<At> = self.deeds.keys().filter(undone).copied().collect();
        prop_assert_eq!(&*seen.lock().unwrap(), &expected, "what was not done comes again");
        prop_assert!(again.iter().all(|kept| kept.last_if_any().count_open() == 0));
        Ok(())
    }
}

/// Runs a program in a thread of its own, and checks what it has come to, and that another run
/// does what it has left.
fn tried(program: Program) -> Result<(), TestCaseError> {
    in_a_thread(move |runtime| {
        let (deeds, _time) = (deeds(&program), runtime.enter());
        let started = tokio::time::Instant::now();
        let world = Arc::new(World { program, deeds, seen: Mutex::default(), started });
        let remains = runtime.block_on(run(&world));
        world.check(&remains)?;
        runtime.block_on(world.go_on(&remains.kept))
    })
}

#[test]
fn g08_m03_d02_every_event_has_one_outcome_and_keys_keep_their_order() {
    try_all(program, tried);
}
