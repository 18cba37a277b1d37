//! The figures of one worker.

use std::time::Duration;

use super::{
    dead_letters::DeadLetterCounts,
    {PoolStats, read},
};
use crate::{
    inspect::WorkerStatus,
    pool::membership::slot_state::{SlotState, Status},
};

/// A snapshot of a slot: its counters continue when its worker is restarted, and when another takes
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerStats {
    /// Its number.
    pub slot: usize,
    /// Its name in logs.
    pub name: String,
    /// The type of the actor.
    pub worker_behavior: &'static str,
    /// Its worker handles messages, or is being started (again); `status` says which.
    pub live: bool,
    /// Whether its worker runs. `None` for a vacant slot: its last worker was removed.
    pub status: Option<WorkerStatus>,
    /// How long it has had the message in hand, to a few milliseconds, or as
    /// [`Delivery::queued_at`](crate::Delivery::queued_at) describes. `None` if there is none.
    pub busy_for: Option<Duration>,
    /// The number of the attempt. `None` if no message is in hand.
    pub attempt: Option<u32>,
    /// The most messages that may wait in its own mailbox.
    pub mailbox_size: usize,
    /// Messages that wait there.
    pub queued: u64,
    /// Messages started.
    pub dispatched: u64,
    /// Messages handled.
    pub handled: u64,
    /// Handled ones that were passed to another address as a whole.
    pub forwarded: u64,
    /// Calls that got their handler's error.
    pub failed: u64,
    /// Dead letters, by reason.
    pub dead_letters: DeadLetterCounts,
    /// Messages dropped by the failure policy.
    pub dropped: u64,
    /// Started messages that a stop gave back.
    pub returned: u64,
    /// Attempts that were followed by another.
    pub retries: u64,
    /// Restarts.
    pub restarts: u64,
}

impl PoolStats {
    pub(in crate::pool) fn add(&mut self, worker: &SlotState) {
        let counters = &worker.counters;
        self.starting += usize::from(worker.status() == Status::Starting);
        self.busy += usize::from(worker.is_busy());
        self.dispatched += read(&counters.started);
        self.handled += read(&counters.handled);
        self.forwarded += read(&counters.forwarded);
        self.failed += read(&counters.failed);
        self.dead_letters.add(&counters.dead_letters);
        self.dropped += read(&counters.dropped);
        self.returned += read(&counters.returned);
        self.retries += read(&counters.retries);
        self.restarts += read(&counters.restarts);
    }
}
