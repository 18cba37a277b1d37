//! What a pool is doing, in figures.

use std::{
    hash::Hash,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{core::Core, tally::WorkerTally};
use crate::Actor;

/// A snapshot of a pool. Exact when no thread is inside the pool; otherwise each figure is of its own moment.
///
/// The ledger: `accepted = handled + failed + dead_lettered + dropped + returned + queued + waiting + in_hand`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Workers asked for.
    pub configured: usize,
    /// Workers whose slot is not disabled.
    pub live: usize,
    /// Workers that wait for work.
    pub idle: usize,
    /// The most messages that may be accepted and not started.
    pub capacity: usize,
    /// Messages accepted.
    pub accepted: u64,
    /// Messages not accepted.
    pub rejected: u64,
    /// Messages handled.
    pub handled: u64,
    /// Of these, handed to another address whole.
    pub forwarded: u64,
    /// Calls that got their handler's error.
    pub failed: u64,
    /// Dead letters.
    pub dead_lettered: u64,
    /// Messages dropped by the failure policy.
    pub dropped: u64,
    /// Messages given back by a stop.
    pub returned: u64,
    /// Messages accepted and not started.
    pub queued: u64,
    /// Messages that wait for another attempt.
    pub waiting: u64,
    /// Messages in the hands of workers.
    pub in_hand: u64,
    /// Attempts that were followed by another.
    pub retries: u64,
    /// Restarts of workers.
    pub restarts: u64,
}

impl PoolStats {
    pub(crate) fn of<A: Actor, K: Hash + Eq + Send + Sync + 'static>(core: &Core<A, K>) -> Self {
        let waiting = core.tally.waiting.load(Ordering::Relaxed);
        let mut stats = Self {
            configured: core.roster.lock().len(),
            live: core.live.load(Ordering::Relaxed),
            idle: core.wake.idle(),
            capacity: core.permits.capacity(),
            accepted: core.accepted(),
            rejected: core.tally.rejected.load(Ordering::Relaxed),
            handled: 0,
            forwarded: 0,
            failed: 0,
            dead_lettered: core.tally.dead_lettered.load(Ordering::Relaxed),
            dropped: 0,
            returned: core.tally.returned.load(Ordering::Relaxed),
            queued: core.depth().saturating_sub(waiting) as u64,
            waiting: waiting as u64,
            in_hand: 0,
            retries: 0,
            restarts: 0,
        };
        core.seats.iter().for_each(|seat| stats.add(&seat.tally));
        stats
    }

    fn add(&mut self, tally: &WorkerTally) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.handled += read(&tally.handled);
        self.forwarded += read(&tally.forwarded);
        self.failed += read(&tally.failed);
        self.dead_lettered += read(&tally.dead_lettered);
        self.dropped += read(&tally.dropped);
        self.returned += read(&tally.returned);
        self.in_hand += read(&tally.in_hand);
        self.retries += read(&tally.retries);
        self.restarts += read(&tally.restarts);
    }

    /// Messages that have their outcome.
    pub fn settled(&self) -> u64 {
        self.handled + self.failed + self.dead_lettered + self.dropped + self.returned
    }

    /// True when every accepted message has its outcome.
    pub(crate) fn is_settled(&self) -> bool {
        self.accepted == self.settled()
    }

    /// True when every accepted message is accounted for once.
    pub fn ledger_holds(&self) -> bool {
        self.accepted == self.settled() + self.queued + self.waiting + self.in_hand
    }
}
