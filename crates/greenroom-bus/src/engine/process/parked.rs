//! Parked keys, as a run sees them: the events that they hold, the room that they take, and when
//! they block all progress.
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
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    engine::account::{log_limit::LogLimit, order_audit::OrderLine},
    event::Event,
};

/// Keys that the log names in a second: each wants a decision.
const LOGGED: u32 = 20;

/// A key is parked a moment after its event is recorded here: only older entries were released.
const JUST_NOTED: Duration = Duration::from_secs(10);

/// The next step for the operator, in every message about a parked key.
pub(crate) const WHAT_NEXT: &str = "`greenroom why KEY` says why it waits; `greenroom key resume KEY`, `skip` or `drop` lets it go on";

/// The parked keys, at the last look.
#[derive(Debug, Default)]
pub(crate) struct Parked {
    /// A key has been parked: before that, there is nothing to look at.
    ever: AtomicBool,
    keys: AtomicU64,
    events: AtomicU64,
    /// Events that were refused because they came behind a parked key that may have no more.
    refused: AtomicU64,
    log: LogLimit,
    /// The events that have failed, of keys that are parked, or were a moment ago.
    failed: Mutex<HashMap<OrderLine, (ParkedEvent, Instant)>>,
    /// Why there is no progress, if so.
    standstill: Mutex<Option<String>>,
}

/// An event that has failed and parks its key.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParkedEvent {
    /// The event.
    pub event: Event,
    /// How many attempts it has had.
    pub attempts: u32,
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

    /// The present number of parked keys.
    pub(crate) fn seen(&self, counts: ParkedCounts) {
        self.keys.store(counts.keys, Ordering::Relaxed);
        self.events.store(counts.events, Ordering::Relaxed);
    }

    /// A key is parked. Returns how many lines of the log were left out since the last one, if one
    /// may be written.
    pub(crate) fn parks(&self, now: Instant) -> Option<u64> {
        self.ever.store(true, Ordering::Relaxed);
        self.log.one_of(LOGGED, now)
    }

    /// This event parks its key.
    pub(crate) fn note(&self, line: OrderLine, event: Event, attempts: u32, now: Instant) {
        self.failed.lock().insert(line, (ParkedEvent { event, attempts }, now));
    }

    /// The event that has parked this key, if it is parked.
    pub(crate) fn event(&self, line: &OrderLine) -> Option<ParkedEvent> {
        self.failed.lock().get(line).map(|(event, _)| event.clone())
    }

    /// Forgets the events of keys that are parked no more.
    pub(crate) fn forget_others(&self, now: Instant, is_parked: impl Fn(&OrderLine) -> bool) {
        let is_new = |at: &Instant| now.duration_since(*at) < JUST_NOTED;
        self.failed.lock().retain(|line, (_, at)| is_new(at) || is_parked(line));
    }

    /// There is no progress, for this reason.
    pub(crate) fn stands_still(&self, why: &str) {
        *self.standstill.lock() = Some(why.to_owned());
    }

    pub(crate) fn goes_on(&self) {
        *self.standstill.lock() = None;
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
