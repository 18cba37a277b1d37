//! Detects that a run makes no progress because keys are parked, and counts the events that it
//! leaves behind.

use std::{collections::HashSet, time::Duration};

use greenroom_config::plural;
use tokio::time::Instant;

use super::engine::Parts;
use crate::engine::{
    account::order_audit::OrderLine,
    process::{
        job::PoolJob,
        parked::{ParkedCounts, WHAT_NEXT},
    },
    shared::Shared,
};

/// How often the pools are asked. Events that come in between are also bounded by the budget of
/// their input.
const LOOK: Duration = Duration::from_millis(500);

/// Without a settlement, and without the possibility of one, a run counts as standing still after
/// this time.
const STANDSTILL: Duration = Duration::from_secs(5);

/// How often a run without progress reports it.
const SAID_AGAIN: Duration = Duration::from_secs(60);

/// Keys that an error names.
const NAMED: usize = 3;

/// The events that a run left behind parked keys, for its report.
#[derive(Debug, Default)]
pub(crate) struct LeftParked {
    events: u64,
    keys: u64,
    /// Some of the keys, in words.
    named: Vec<String>,
}

impl LeftParked {
    /// Counts jobs that a pool has given back.
    pub(crate) fn count(shared: &Shared, jobs: &[PoolJob]) -> Self {
        let mut left = Self { events: jobs.len() as u64, ..Self::default() };
        for job in jobs {
            let Some(error) = job.extras().and_then(|extras| extras.parked_for.as_ref()) else {
                continue;
            };
            left.keys += 1;
            if left.named.len() < NAMED {
                let key = job.line.as_ref().map_or("", |line| &*line.key);
                let (handler, id) = (&shared.process.handlers[job.handler()].name, job.event.id());
                left.named
                    .push(format!("{key:?} of {handler:?}, whose event {id:?} failed: {error}"));
            }
        }
        left
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// For example: `12 events not handled, because of 2 parked keys ("a" of
    /// "push", whose event ...)`.
    pub(crate) fn summary(&self) -> String {
        let more = if self.keys > self.named.len() as u64 { "; ..." } else { "" };
        format!(
            "{} not handled, because of {} ({}{more}); refused: a run that is given them again takes \
             them up",
            plural(self.events as usize, "event"),
            plural(self.keys as usize, "parked key"),
            self.named.join("; ")
        )
    }
}

/// A run's view of parked keys.
#[derive(Debug, Default)]
pub(crate) struct StandstillWatch {
    looked_at: Option<Instant>,
    /// Since when there is no progress, and how many events were settled by then.
    still: Option<(Instant, u64)>,
    said_at: Option<Instant>,
}

impl StandstillWatch {
    /// Checks, if it is time to. Returns why the run has to end, if it makes no progress and
    /// nothing can change that.
    pub(crate) fn look(&mut self, engine: &Parts, ending: bool) -> Option<String> {
        if !engine.shared.process.parked.any() {
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
                shared.process.parked.goes_on();
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
        let why = explain(shared);
        shared.process.parked.stands_still(&why);
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

/// Asks the pools for their parked keys, and reports to the inputs how much each key holds.
pub(crate) fn look_at_keys(engine: &Parts) {
    // An event that was in hand when its partition was taken away may have parked its key since.
    engine.give_up_waiting();
    let (mut keys, mut events) = (0, 0);
    let (mut of_inputs, mut lines): (Vec<u64>, HashSet<OrderLine>) = Default::default();
    for pool in engine.managed.iter().filter_map(|managed| managed.keys.as_ref()) {
        for parked in pool.parked() {
            let line: &OrderLine = &parked.key;
            lines.insert(line.clone());
            let (place, with_its_head) = (line.input as usize, 1 + parked.waiting as u64);
            keys += 1;
            events += with_its_head;
            if of_inputs.len() <= place {
                of_inputs.resize(place + 1, 0);
            }
            of_inputs[place] += with_its_head;
        }
    }
    leave_rooms(engine, &lines);
    engine.shared.process.parked.forget_others(Instant::now(), |line| lines.contains(line));
    engine.shared.process.parked.seen(ParkedCounts { keys, events });
    engine.shared.inputs.hold_parked(&of_inputs);
}

/// Behind parked keys, events take no room of their share, as they take none of their pool.
fn leave_rooms(engine: &Parts, parked: &HashSet<OrderLine>) {
    let pools = engine.shared.process.pools.iter().zip(engine.managed.iter());
    for (_, managed) in pools.filter(|(pool, _)| pool.rooms.is_some()) {
        managed.admin.withdraw(|job| {
            if let Some(room) = job.room()
                && job.line.as_ref().is_some_and(|line| parked.contains(line))
            {
                room.leaves();
            }
            false
        });
    }
}

/// True if all that was taken and is not settled waits behind parked keys, or for room that these
/// have, and no input can be read on.
fn stands_still(engine: &Parts) -> bool {
    let shared = &engine.shared;
    if !shared.inputs.all_stand() || !is_parked(engine) {
        return false;
    }
    // Nothing is on its way to an output, to the dead letters, or in the hands of a handler that
    // settles later.
    let waits = shared.process.parked.counts().events + shared.inputs.waiting();
    shared.ledger.counts().unsettled() <= waits
}

fn explain(shared: &Shared) -> String {
    let ParkedCounts { keys, events } = shared.process.parked.counts();
    let full = shared.inputs.names_of_those_that_stand();
    let full = match full.is_empty() {
        true => String::new(),
        false => format!(", and hold all that {} may have under way", full.join(", ")),
    };
    let (keys, events) = (plural(keys as usize, "parked key"), plural(events as usize, "event"));
    format!("nothing goes on because of {keys} with {events}{full}")
}

/// True if everything that the pools still hold waits for an operator to decide, and there is
/// something.
pub(crate) fn is_parked(engine: &Parts) -> bool {
    let stats = engine.pools.iter().map(|pool| pool.stats());
    let (held, parked) = stats.fold((0, 0), |(held, parked), stats| {
        (held + stats.queued + stats.waiting + stats.in_hand, parked + stats.parked)
    });
    parked > 0 && held == parked
}
