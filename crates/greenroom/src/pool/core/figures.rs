//! What a pool and its workers are doing, counted together.

use std::{hash::Hash, sync::atomic::Ordering};

use super::Core;
use crate::{
    Actor,
    inspect::WorkerStatus,
    pool::stats::{DeadLetterCounts, LatencySummary, PoolStats, WorkerStats, read},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// What the pool is doing.
    pub(crate) fn figures(&self) -> PoolStats {
        let (queueing, handling) = self.telemetry.measured.spreads();
        let (oldest, parked) = (self.oldest(), self.parked_messages());
        PoolStats { oldest, parked, queueing, handling, ..self.ledger() }
    }

    /// The counters, without the measurements.
    pub(crate) fn ledger(&self) -> PoolStats {
        let waiting = self.telemetry.tally.waiting.load(Ordering::Relaxed);
        let mut stats = PoolStats {
            worker_behavior: std::any::type_name::<A>(),
            configured: self.membership.size(),
            live: self.membership.live.load(Ordering::Relaxed),
            starting: 0,
            idle: self.queue.wake.idle(),
            busy: 0,
            capacity: self.queue.permits.capacity(),
            accepted: self.accepted(),
            rejected: read(&self.telemetry.tally.rejected),
            inbox_full: self.telemetry.full_episodes(),
            inbox_full_waits: read(&self.telemetry.tally.waits),
            dispatched: 0,
            handled: 0,
            forwarded: 0,
            failed: 0,
            dead_lettered: 0,
            dead_letters: DeadLetterCounts::default(),
            dropped: 0,
            returned: read(&self.telemetry.tally.returned),
            withdrawn: read(&self.telemetry.tally.withdrawn),
            queued: self.depth().saturating_sub(waiting) as u64,
            oldest: None,
            held: self.held_for_others() as u64,
            waiting: waiting as u64,
            parked: 0,
            queued_bytes: self.settings.derived.bytes.as_ref().map(|bytes| bytes.waiting()),
            in_hand: 0,
            retries: 0,
            restarts: 0,
            queueing: LatencySummary::default(),
            handling: LatencySummary::default(),
            limits: self
                .settings
                .derived
                .gate
                .as_ref()
                .map(|gate| gate.stats())
                .unwrap_or_default(),
        };
        self.membership.seats.iter().for_each(|seat| stats.add(seat));
        stats.dead_letters.add(&self.telemetry.tally.dead_letters);
        stats.dead_lettered = stats.dead_letters.total();
        let more = self.membership.seats.iter().map(|seat| read(&seat.tally.more_in_hand));
        stats.in_hand = stats.busy as u64 + more.sum::<u64>();
        stats
    }

    /// Of all slots that there have been: the work of workers that have gone counts for their pool.
    pub(crate) fn worker_figures(&self) -> Vec<WorkerStats> {
        (0..self.membership.seats.len()).map(|slot| self.figures_of(slot)).collect()
    }

    fn figures_of(&self, slot: usize) -> WorkerStats {
        let seat = self.membership.seats.at(slot);
        let mailbox = self.mailbox_if_any(slot);
        let status = seat.status().told();
        let mut dead_letters = DeadLetterCounts::default();
        dead_letters.add(&seat.tally.dead_letters);
        WorkerStats {
            slot,
            name: self.worker_name(slot),
            worker_behavior: std::any::type_name::<A>(),
            live: matches!(status, Some(WorkerStatus::Live | WorkerStatus::Starting)),
            status,
            busy_for: seat
                .busy_since(|| self.telemetry.coarse.real())
                .map(|since| since.age(self.telemetry.coarse.real())),
            attempt: seat.is_busy().then(|| seat.attempt()),
            mailbox_size: self.settings.config.size.mailbox,
            queued: mailbox.map_or(0, |mailbox| mailbox.waiting() as u64),
            dispatched: read(&seat.tally.started),
            handled: read(&seat.tally.handled),
            forwarded: read(&seat.tally.forwarded),
            failed: read(&seat.tally.failed),
            dead_letters,
            dropped: read(&seat.tally.dropped),
            returned: read(&seat.tally.returned),
            retries: read(&seat.tally.retries),
            restarts: read(&seat.tally.restarts),
        }
    }
}
