//! The ledger's right side: what became of messages, counted by one writer each.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of one seat, on a cache line of its own, written by its worker (or, once that is gone, by whoever cleans up
/// behind it) with plain loads and stores. They go on when the next worker takes the seat.
#[derive(Debug, Default)]
pub(crate) struct WorkerTally {
    pub(crate) handled: AtomicU64,
    /// Of these, handed to another address whole.
    pub(crate) forwarded: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dead_lettered: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) returned: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) restarts: AtomicU64,
    /// Messages started: each gives up its permit.
    pub(crate) started: AtomicU64,
    /// 1 while a message is in hand.
    pub(crate) in_hand: AtomicU64,
}

/// Counters with several, rare writers.
#[derive(Debug, Default)]
pub(crate) struct PoolTally {
    pub(crate) rejected: AtomicU64,
    /// Messages that were accepted by mailboxes of workers that have gone, or held back.
    pub(crate) accepted: AtomicU64,
    /// Messages given back by a stop before they were started.
    pub(crate) returned: AtomicU64,
    /// Messages for which no worker was left.
    pub(crate) dead_lettered: AtomicU64,
    /// Messages that wait for another attempt.
    pub(crate) waiting: AtomicUsize,
}

/// Adds one to a counter that only the caller writes.
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
