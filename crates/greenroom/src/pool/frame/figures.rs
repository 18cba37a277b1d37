//! The figures of a pool and its workers, counted together.

use std::sync::atomic::Ordering;

use super::{AnyCore, Counts, Unattended};
use crate::{
    inspect::WorkerStatus,
    pool::membership::slot_state::SlotState,
    pool::stats::{DeadLetterCounts, PoolStats, WorkerStats, read},
};

/// The figures of the pool.
pub(crate) fn figures(pool: &dyn AnyCore) -> PoolStats {
    let (queueing, handling) = pool.frame().telemetry.measured.spreads();
    let (oldest, Unattended { parked, .. }) = (pool.oldest(), pool.unattended());
    PoolStats { oldest, parked, queueing, handling, ..ledger(pool) }
}

/// The counters, without the measurements.
pub(crate) fn ledger(pool: &dyn AnyCore) -> PoolStats {
    let waiting = pool.frame().telemetry.counters.waiting.load(Ordering::Relaxed);
    let Counts { accepted, held_for_others, bytes } = pool.counts();
    let mut stats = PoolStats {
        worker_behavior: pool.frame().behavior,
        configured: pool.frame().membership.size(),
        live: pool.frame().membership.live.load(Ordering::Relaxed),
        idle: pool.wake().idle(),
        capacity: pool.permits().capacity(),
        accepted,
        rejected: read(&pool.frame().telemetry.counters.rejected),
        inbox_full: pool.frame().telemetry.full_episodes(),
        inbox_full_waits: read(&pool.frame().telemetry.counters.waits),
        returned: read(&pool.frame().telemetry.counters.returned),
        withdrawn: read(&pool.frame().telemetry.counters.withdrawn),
        queued: pool.depth().saturating_sub(waiting) as u64,
        held: held_for_others as u64,
        waiting: waiting as u64,
        queued_bytes: bytes,
        limits: pool.frame().limits.as_ref().map(|gate| gate.stats()).unwrap_or_default(),
        ..PoolStats::default()
    };
    for slot_state in pool.frame().membership.slots.iter() {
        stats.add(slot_state);
        stats.in_hand += read(&slot_state.counters.more_in_hand);
    }
    stats.in_hand += stats.busy as u64;
    stats.dead_letters.add(&pool.frame().telemetry.counters.dead_letters);
    stats.dead_lettered = stats.dead_letters.total();
    if is_ended(pool) {
        // Only the stuck workers are left.
        (stats.live, stats.starting) = (stats.busy, 0);
    }
    stats
}

/// The figures of all slots so far: the work of workers that have gone counts for their pool.
pub(crate) fn worker_figures(pool: &dyn AnyCore) -> Vec<WorkerStats> {
    let mut figures = Vec::new();
    for slot in 0..pool.frame().membership.slots.len() {
        figures.push(figures_of(pool, slot));
    }
    figures
}

/// Slots keep their state after the pool has ended, but their workers are gone, except for stuck
/// ones. A disabled slot stays disabled.
pub(crate) fn status_of(pool: &dyn AnyCore, slot_state: &SlotState) -> Option<WorkerStatus> {
    let is_over = is_ended(pool) && !slot_state.is_busy();
    let status = slot_state.status().as_public();
    status.filter(|status| !is_over || *status == WorkerStatus::Disabled)
}

fn is_ended(pool: &dyn AnyCore) -> bool {
    // Pairs with the store in `end`: otherwise workers of a pool that has ended count as live.
    pool.frame().lifecycle.ended.load(Ordering::SeqCst)
}

fn figures_of(pool: &dyn AnyCore, slot: usize) -> WorkerStats {
    let slot_state = pool.frame().membership.slots.at(slot);
    let mailbox = pool.mail(slot);
    let status = status_of(pool, slot_state);
    let mut dead_letters = DeadLetterCounts::default();
    dead_letters.add(&slot_state.counters.dead_letters);
    WorkerStats {
        slot,
        name: pool.frame().worker_name(slot),
        worker_behavior: pool.frame().behavior,
        live: matches!(status, Some(WorkerStatus::Live | WorkerStatus::Starting)),
        status,
        busy_for: slot_state
            .busy_since(|| pool.frame().telemetry.coarse.real())
            .map(|since| since.age(pool.frame().telemetry.coarse.real())),
        attempt: slot_state.is_busy().then(|| slot_state.attempt()),
        mailbox_size: pool.frame().config.size.mailbox,
        queued: mailbox.map_or(0, |mailbox| mailbox.waiting as u64),
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
