//! What a pool and its workers are doing, counted together.

use std::{hash::Hash, sync::atomic::Ordering};

use super::Core;
use crate::{
    Actor,
    inspect::WorkerStatus,
    pool::membership::slot_state::SlotState,
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
        let waiting = self.telemetry.counters.waiting.load(Ordering::Relaxed);
        let mut stats = PoolStats {
            worker_behavior: std::any::type_name::<A>(),
            configured: self.membership.size(),
            live: self.membership.live.load(Ordering::Relaxed),
            starting: 0,
            idle: self.queue.wake.idle(),
            busy: 0,
            capacity: self.queue.permits.capacity(),
            accepted: self.accepted(),
            rejected: read(&self.telemetry.counters.rejected),
            inbox_full: self.telemetry.full_episodes(),
            inbox_full_waits: read(&self.telemetry.counters.waits),
            dispatched: 0,
            handled: 0,
            forwarded: 0,
            failed: 0,
            dead_lettered: 0,
            dead_letters: DeadLetterCounts::default(),
            dropped: 0,
            returned: read(&self.telemetry.counters.returned),
            withdrawn: read(&self.telemetry.counters.withdrawn),
            queued: self.depth().saturating_sub(waiting) as u64,
            oldest: None,
            held: self.push.as_ref().map_or(0, |push| push.held_for_others(self)) as u64,
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
        for slot_state in self.membership.slots.iter() {
            stats.add(slot_state);
            stats.in_hand += read(&slot_state.counters.more_in_hand);
        }
        stats.in_hand += stats.busy as u64;
        stats.dead_letters.add(&self.telemetry.counters.dead_letters);
        stats.dead_lettered = stats.dead_letters.total();
        if self.is_ended() {
            // Only those that do not let go are left.
            (stats.live, stats.starting) = (stats.busy, 0);
        }
        stats
    }

    /// Of all slots that there have been: the work of workers that have gone counts for their pool.
    pub(crate) fn worker_figures(&self) -> Vec<WorkerStats> {
        let mut figures = Vec::new();
        for slot in 0..self.membership.slots.len() {
            figures.push(self.figures_of(slot));
        }
        figures
    }

    /// Slots keep their state when the pool has ended, but their workers are gone, except for those
    /// that do not let go. What was disabled stays so.
    pub(super) fn status_of(&self, slot_state: &SlotState) -> Option<WorkerStatus> {
        let is_over = self.is_ended() && !slot_state.is_busy();
        let status = slot_state.status().as_public();
        status.filter(|status| !is_over || *status == WorkerStatus::Disabled)
    }

    fn is_ended(&self) -> bool {
        // Pairs with the store in `end`: otherwise workers of a pool that has ended count as live.
        self.lifecycle.ended.load(Ordering::SeqCst)
    }

    fn figures_of(&self, slot: usize) -> WorkerStats {
        let slot_state = self.membership.slots.at(slot);
        let mailbox = self.mailbox_if_any(slot);
        let status = self.status_of(slot_state);
        let mut dead_letters = DeadLetterCounts::default();
        dead_letters.add(&slot_state.counters.dead_letters);
        WorkerStats {
            slot,
            name: self.worker_name(slot),
            worker_behavior: std::any::type_name::<A>(),
            live: matches!(status, Some(WorkerStatus::Live | WorkerStatus::Starting)),
            status,
            busy_for: slot_state
                .busy_since(|| self.telemetry.coarse.real())
                .map(|since| since.age(self.telemetry.coarse.real())),
            attempt: slot_state.is_busy().then(|| slot_state.attempt()),
            mailbox_size: self.settings.config.size.mailbox,
            queued: mailbox.map_or(0, |mailbox| mailbox.waiting() as u64),
            dispatched: read(&slot_state.counters.started),
            handled: read(&slot_state.counters.handled),
            forwarded: read(&slot_state.counters.forwarded),
            failed: read(&slot_state.counters.failed),
            dead_letters,
            dropped: read(&slot_state.counters.dropped),
            returned: read(&slot_state.counters.returned),
            retries: read(&slot_state.counters.retries),
            restarts: read(&slot_state.counters.restarts),
        }
    }
}
