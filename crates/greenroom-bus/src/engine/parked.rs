//! Keys that are parked, as a run sees them: what they hold, whose room they take, and when nothing
//! else is left.
//!
//! ```text
//! final failure ──▶ the pool parks the key ──▶ told here: a log line with key, handler, event, error
//!                        │
//!                        │ what waits behind it takes no room of the pool, but bytes of its input
//!                        ▼
//!   half of an input's bytes ──▶ later events of its parked keys are refused, the others go on
//!   all of them, and nothing else is under way ──▶ a standstill: the run ends, or says so
//! ```
//!
//! Nothing is counted while events pass. Once a key was parked, the run asks its pools for their
//! parked keys twice a second.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Parts,
    log_limit::LogLimit,
    order_audit::Line,
    shared::{Job, Shared},
};

/// How often the pools are asked. What comes in between is bounded by the budget of its input, too.
const LOOK: Duration = Duration::from_millis(500);

/// So long nothing is settled, and nothing can be, before a run takes it for a standstill.
const STANDSTILL: Duration = Duration::from_secs(5);

/// How often a run that stands still says so.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// Keys that the log names in a second: each wants a decision.
const LOGGED: u32 = 20;

/// Keys that an error names.
const NAMED: usize = 3;

/// What follows for the operator, wherever a parked key is told of.
pub(crate) const WHAT_NEXT: &str = "`greenroom why KEY` says why it waits; `POST /api/keys/resume`, `skip` or `drop` with `?key=KEY` lets it go on";

/// What is parked, when last looked at.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    /// A key was parked: nobody looks before.
    ever: AtomicBool,
    keys: AtomicU64,
    events: AtomicU64,
    /// Events that were refused because they came behind a parked key that may have no more.
    refused: AtomicU64,
    log: LogLimit,
    /// Why nothing goes on, where nothing does.
    standstill: Mutex<Option<String>>,
}

/// How much is parked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ParkedCounts {
    pub(crate) keys: u64,
    pub(crate) events: u64,
}

impl Parked {
    pub(crate) fn counts(&self) -> ParkedCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ParkedCounts { keys: load(&self.keys), events: load(&self.events) }
    }

    pub(crate) fn standstill(&self) -> Option<String> {
        self.standstill.lock().clone()
    }

    /// An event came behind a parked key that takes nothing more.
    pub(crate) fn refuses(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn any(&self) -> bool {
        self.ever.load(Ordering::Relaxed)
    }
}

/// A job parks its key. Its error stays with it for the report.
pub(crate) fn parks(shared: &Shared, job: &mut Job, error: &str) {
    shared.parked.ever.store(true, Ordering::Relaxed);
    job.parked_for = Some(error.into());
    // A later attempt is the first again.
    job.tries.begin_anew();
    let Some(left_out) = shared.parked.log.one_of(LOGGED, Instant::now()) else { return };
    let handler = &shared.handlers[job.handler];
    let key = job.line.as_ref().map(|line| &*line.key);
    let (id, attempts, input) =
        (job.event.id(), job.attempts, shared.inputs.label(job.origin.input));
    let (input, pool, handler) = (&*input, &*shared.pools[handler.pool].name, &*handler.name);
    tracing::warn!(
        key,
        handler,
        pool,
        input,
        id,
        attempts,
        error,
        lines_left_out = left_out,
        "a key waits for an operator, with all its events: {WHAT_NEXT}"
    );
}

/// What a run left behind parked keys, for its report.
#[derive(Debug, Default)]
pub(super) struct LeftParked {
    events: u64,
    keys: u64,
    /// Some of the keys, in words.
    named: Vec<String>,
}

impl LeftParked {
    /// Of what a pool has given back.
    pub(super) fn of(shared: &Shared, jobs: &[Job]) -> Self {
        let mut left = Self { events: jobs.len() as u64, ..Self::default() };
        for job in jobs {
            let Some(error) = &job.parked_for else { continue };
            left.keys += 1;
            if left.named.len() < NAMED {
                let key = job.line.as_ref().map_or("", |line| &*line.key);
                let (handler, id) = (&shared.handlers[job.handler].name, job.event.id());
                left.named
                    .push(format!("{key:?} of {handler:?}, whose event {id:?} failed: {error}"));
            }
        }
        left
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// For example: `12 events are not handled, because their keys are parked (2 keys: "a" of
    /// "push", whose event ...)`.
    pub(super) fn in_words(&self) -> String {
        let more = if self.keys > self.named.len() as u64 { "; ..." } else { "" };
        let keys = if self.keys == 1 { "key" } else { "keys" };
        format!(
            "{} events are not handled, because their keys are parked ({} {keys}: {}{more}); they are refused: a run \
             that is given them again takes them up",
            self.events,
            self.keys,
            self.named.join("; ")
        )
    }
}

/// What a run has seen of parked keys.
#[derive(Debug, Default)]
pub(super) struct Watch {
    looked_at: Option<Instant>,
    /// Since when nothing can go on, and what was settled then.
    still: Option<(Instant, u64)>,
    said_at: Option<Instant>,
}

impl Watch {
    /// Looks, where it is time to. Why the run has to end, where it stands still and nothing can
    /// change that.
    pub(super) fn look(&mut self, engine: &Parts, ending: bool) -> Option<String> {
        if !engine.shared.parked.any() {
            return None;
        }
        let now = Instant::now();
        if self.looked_at.is_some_and(|at| now.duration_since(at) < LOOK) {
            return None;
        }
        self.looked_at = Some(now);
        look_at_keys(engine);
        self.look_for_standstill(engine, ending, now)
    }

    fn look_for_standstill(
        &mut self,
        engine: &Parts,
        ending: bool,
        now: Instant,
    ) -> Option<String> {
        let shared = &engine.shared;
        let settled = shared.ledger.counts().settled();
        let (since, before) = match stands_still(engine) {
            true => *self.still.get_or_insert((now, settled)),
            false => {
                (self.still, self.said_at) = (None, None);
                *shared.parked.standstill.lock() = None;
                return None;
            }
        };
        if before != settled {
            self.still = Some((now, settled));
            return None;
        }
        if now.duration_since(since) < STANDSTILL {
            return None;
        }
        let why = in_words(shared);
        *shared.parked.standstill.lock() = Some(why.clone());
        if ending || shared.inputs.all_are_finite() {
            return Some(why);
        }
        if self.said_at.is_none_or(|at| now.duration_since(at) >= SAID_AGAIN) {
            self.said_at = Some(now);
            tracing::error!("{why}: {WHAT_NEXT}; `GET /api/keys` lists the parked keys");
        }
        None
    }
}

/// Asks the pools for their parked keys, and tells the inputs what they hold of each.
pub(super) fn look_at_keys(engine: &Parts) {
    let (mut keys, mut events) = (0, 0);
    let mut of_inputs: Vec<u64> = Vec::new();
    for pool in engine.managed.iter().filter_map(|managed| managed.keys.as_ref()) {
        for parked in pool.parked() {
            let line: &Line = &parked.key;
            let (place, with_its_head) = (line.input as usize, 1 + parked.waiting as u64);
            keys += 1;
            events += with_its_head;
            if of_inputs.len() <= place {
                of_inputs.resize(place + 1, 0);
            }
            of_inputs[place] += with_its_head;
        }
    }
    let parked = &engine.shared.parked;
    parked.keys.store(keys, Ordering::Relaxed);
    parked.events.store(events, Ordering::Relaxed);
    engine.shared.inputs.hold_parked(&of_inputs);
}

/// True where all that was taken and is not settled waits behind parked keys, or for room that
/// these have, and no input can be read on.
fn stands_still(engine: &Parts) -> bool {
    let shared = &engine.shared;
    if !shared.inputs.all_stand() || !super::run::is_parked(engine) {
        return false;
    }
    // Nothing is on its way to an output, to the dead letters, or in the hands of a handler that
    // settles later.
    let waits = shared.parked.counts().events + shared.inputs.waiting();
    shared.ledger.counts().unsettled() <= waits
}

fn in_words(shared: &Shared) -> String {
    let ParkedCounts { keys, events } = shared.parked.counts();
    let full = shared.inputs.names_of_those_that_stand();
    let full = match full.is_empty() {
        true => String::new(),
        false => format!(", and hold all that {} may have under way", full.join(", ")),
    };
    format!("nothing goes on: {keys} keys are parked with {events} events{full}")
}
