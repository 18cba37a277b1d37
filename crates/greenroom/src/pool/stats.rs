//! The state of a pool in figures.
//!
//! Counters have one writer each, or are written under a lock that is taken anyway. The clock is
//! read for one message in 512 if handlers are quick, for one in eight if they take longer than two
//! microseconds, and for each if they take longer than 32; all other messages get the time of a
//! coarse clock. The longest-waiting message is looked up when statistics are requested.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use super::limits::LimitStats;

pub(crate) mod counters;
mod dead_letters;
mod latencies;
mod latency_summary;
pub(crate) mod sketch;
pub(crate) mod telemetry;
mod worker;

pub use dead_letters::DeadLetterCounts;
pub use latencies::{Latencies, LatencyHistogram};
pub use latency_summary::{LatencySnapshot, LatencySummary};
pub(crate) use latency_summary::{Measured, Measurement};
pub use worker::WorkerStats;

/// A snapshot of a pool. Exact if no thread is inside the pool; otherwise each figure is from its
/// own moment.
///
/// The ledger: `accepted = handled + failed + dead_lettered + dropped + returned + withdrawn +
/// queued + waiting + in_hand`.
///
/// ```
/// # use greenroom::prelude::*;
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).workers(2).spawn().await?;
/// assert!(pool.call(7).await.is_ok());
/// let stats = pool.stats();
/// assert_eq!((stats.accepted, stats.handled, stats.oldest), (1, 1, None));
/// assert_eq!(stats.handling.count, 1);
/// assert!(stats.ledger_holds());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// The type of the actor.
    pub worker_behavior: &'static str,
    /// Requested workers: those of [`live`](Self::live), and disabled slots.
    pub configured: usize,
    /// Workers whose slot is not disabled: those that run, and those that are being started.
    pub live: usize,
    /// Those of them that are being started, for the first time or again: they handle nothing yet.
    pub starting: usize,
    /// Workers that wait for work.
    pub idle: usize,
    /// Workers with a message in hand.
    pub busy: usize,
    /// The most messages that may be accepted and not started.
    pub capacity: usize,
    /// Messages accepted.
    pub accepted: u64,
    /// Messages not accepted.
    pub rejected: u64,
    /// How often the mailbox has become full: a sender found no room, for the first time since the
    /// mailbox was at most half full.
    pub inbox_full: u64,
    /// Sends, calls and reservations that had to wait for room.
    pub inbox_full_waits: u64,
    /// Messages started, counted once per attempt.
    pub dispatched: u64,
    /// Messages handled.
    pub handled: u64,
    /// Handled ones that were passed to another address as a whole.
    pub forwarded: u64,
    /// Calls that got their handler's error.
    pub failed: u64,
    /// Dead letters.
    pub dead_lettered: u64,
    /// The same by reason.
    pub dead_letters: DeadLetterCounts,
    /// Messages dropped by the failure policy.
    pub dropped: u64,
    /// Messages given back by a stop.
    pub returned: u64,
    /// Messages that were [withdrawn](crate::PoolAdmin::withdraw), or no longer
    /// [wanted](crate::PoolBuilder::starts_if) when they would have been started.
    pub withdrawn: u64,
    /// Messages accepted and not started.
    pub queued: u64,
    /// How long the oldest of these has waited, to a few milliseconds. `None` if there is none.
    pub oldest: Option<Duration>,
    /// Messages of a [sticky](crate::pool::sticky) pool, queued or waiting for a retry, that move
    /// to another worker once theirs has finished its message in hand.
    pub held: u64,
    /// Messages that wait for a retry, or at the head of a parked key.
    pub waiting: u64,
    /// Queued and waiting messages in the lines of parked keys: they are not handled before an
    /// operator has decided.
    pub parked: u64,
    /// Queued bytes, in a pool that bounds them ([`max_bytes`](crate::PoolBuilder::max_bytes)); a
    /// message larger than the bound counts as the bound.
    pub queued_bytes: Option<u64>,
    /// Messages in the hands of workers.
    pub in_hand: u64,
    /// Attempts that were followed by another.
    pub retries: u64,
    /// Restarts of workers.
    pub restarts: u64,
    /// How long messages waited before they were started.
    pub queueing: LatencySummary,
    /// How long they were in hand.
    pub handling: LatencySummary,
    /// The current state of the pool's limits.
    pub limits: LimitStats,
}

impl PoolStats {
    /// Messages that hold a place of the capacity: queued, or waiting for a retry.
    pub fn depth(&self) -> u64 {
        self.queued + self.waiting
    }

    /// The number of settled messages.
    pub fn settled(&self) -> u64 {
        let given_up = self.dropped + self.returned + self.withdrawn;
        self.handled + self.failed + self.dead_lettered + given_up
    }

    /// True if every accepted message is settled.
    pub(crate) fn is_settled(&self) -> bool {
        self.accepted == self.settled()
    }

    /// True if every accepted message is accounted for once.
    pub fn ledger_holds(&self) -> bool {
        self.accepted == self.settled() + self.queued + self.waiting + self.in_hand
    }
}

pub(super) fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
