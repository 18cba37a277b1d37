//! The right side of the ledger: the outcomes of messages, each counted by one writer.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::DeadLetterReason;

/// Counters of one slot, on a cache line of its own, written by its worker (or, once the worker has
/// gone, by the task that cleans up after it) with plain loads and stores. They continue when the
/// next worker takes the slot.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct WorkerCounters {
    /// Messages started: each gives up its permit.
    pub(crate) started: AtomicU64,
    pub(crate) handled: AtomicU64,
    /// When the message in hand was started, in nanoseconds and one more; 0 while there is none.
    /// The one counter with other writers: if the clock was not read for the message, the first
    /// observer sets it.
    pub(crate) in_hand: AtomicU64,
    /// Messages in hand besides that one, in a pool of batches.
    pub(crate) more_in_hand: AtomicU64,
    /// Handled ones that were passed to another address as a whole.
    pub(crate) forwarded: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) returned: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) restarts: AtomicU64,
    pub(crate) dead_letters: DeadLetterCounters,
}

/// Counters with several, rare writers.
#[derive(Debug, Default)]
pub(crate) struct PoolCounters {
    pub(crate) rejected: AtomicU64,
    /// Sends and reservations that had to wait for room.
    pub(crate) waits: AtomicU64,
    /// Messages that were accepted by mailboxes of workers that have gone, or were held back.
    pub(crate) accepted: AtomicU64,
    /// Messages given back by a stop before they were started.
    pub(crate) returned: AtomicU64,
    /// Messages withdrawn before they were started.
    pub(crate) withdrawn: AtomicU64,
    /// Messages that no worker has had in hand.
    pub(crate) dead_letters: DeadLetterCounters,
    /// Messages that wait for a retry.
    pub(crate) waiting: AtomicUsize,
}

/// Adds one to a counter that only the caller writes.
#[inline]
pub(crate) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Dead letters by their reasons.
#[derive(Debug, Default)]
pub(crate) struct DeadLetterCounters(pub(crate) [AtomicU64; DeadLetterReason::ALL.len()]);

impl DeadLetterCounters {
    /// Counts one, for a counter with one writer.
    pub(crate) fn count(&self, reason: DeadLetterReason) {
        count(&self.0[reason as usize]);
    }

    /// Counts one, for a counter with several writers.
    pub(crate) fn count_shared(&self, reason: DeadLetterReason) {
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
    }
}
