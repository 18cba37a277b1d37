//! The counters of pools, by pool.

use std::time::Duration;

use greenroom::{
    inspect::WorkerStatus,
    keys::KeyCounts,
    stats::{Latencies, WorkerStats},
};

use super::{Families, Metric};
use crate::engine::{PoolControl, PoolView};

/// Options for the figures of workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Their counters are separate.
    pub(super) per_worker: bool,
    /// A worker with a message in hand for this long is wedged.
    pub(super) wedged_after: Duration,
}

const OF_POOL: &[&str] = &["pool"];

/// For a worker if requested; otherwise `actor_id` is empty.
const OF_WORKER: &[&str] = &["pool", "actor_id"];

metrics! {
    SENT: counter("actor_pool_messages_sent_total", OF_POOL) =
        "Messages that the pool has accepted.";
    PROCESSED: counter("actor_pool_messages_processed_total", &["pool", "actor_id", "success"]) =
        "Messages whose handling has ended, by success or final failure.";
    FAILED: counter("actor_pool_messages_failed_total", OF_POOL) =
        "Attempts that failed, without events that were given back unstarted.";
    RETRIES: counter("actor_pool_retries_total", &["pool", "class"]) =
        "Failures that were followed by another attempt, by class.";
    LATENCY: histogram("actor_pool_message_latency_seconds", OF_POOL) =
        "From accepted to done, waiting and handling together; measured by sample.";
    QUEUE_TIME: histogram("actor_pool_queue_seconds", OF_POOL) =
        "How long messages waited before they were started; measured by sample.";
    HANDLING_TIME: histogram("actor_pool_handling_seconds", OF_POOL) =
        "How long messages were in hand; measured by sample.";
    RESTARTED: counter("actor_pool_actors_restarted_total", OF_WORKER) = "Restarts of workers.";
    DEAD_LETTERS: counter("actor_pool_dead_letters_total", OF_POOL) =
        "Events for the pool's handlers that were stored as dead letters.";
    DEPTH: gauge("actor_pool_inbox_depth", OF_POOL) =
        "Messages that are queued or wait for another attempt, without those of parked keys.";
    SIZE: gauge("actor_pool_inbox_size", OF_POOL) =
        "The most messages that may be accepted and not started.";
    UTILIZATION: gauge("actor_pool_inbox_utilization", OF_POOL) = "Depth by size, from 0 to 1.";
    FULL: counter("actor_pool_inbox_full_total", OF_POOL) =
        "How often the inbox has become full, after it was at most half full.";
    OLDEST: gauge("actor_pool_oldest_message_seconds", OF_POOL, Seconds) =
        "How long the oldest queued message has waited; 0 if none is queued.";
    WORKERS: gauge("actor_pool_workers", &["pool", "state"]) =
        "Workers by state: busy, idle, starting, disabled.";
    BUSY: gauge("actor_pool_busy_ratio", OF_POOL, Ratio) =
        "The share of live workers that have a message in hand, from 0 to 1.";
    WEDGED: gauge("actor_pool_wedged_workers", OF_POOL) =
        "Workers that have had one message in hand for longer than `wedged_after`, 60 s by \
         default.";
    IN_HAND: gauge("actor_pool_message_in_hand_seconds", OF_WORKER, Seconds) =
        "How long a worker has had its message in hand; 0 if it has none. Only with \
         `per_worker`.";
    LANES: gauge("actor_pool_lanes", &["pool", "state"]) =
        "Keys with a message in hand or waiting, by state: running, retrying, parked, ready.";
    PARKED: gauge("actor_pool_parked_messages", OF_POOL) =
        "Messages of parked keys: they wait for an operator.";
    PAUSED: gauge("actor_pool_paused", OF_POOL) =
        "1 while the pool is paused by an operator, otherwise 0.";
    LIMIT: gauge("actor_pool_limit", OF_POOL) = "The limit of messages in hand, if there is one.";
    WOULD_BE_LIMIT: gauge("actor_pool_would_be_limit", OF_POOL) =
        "The limit of messages in hand that an adaptive limit would set, if it only observes.";
    HELD_BACK: counter("actor_pool_held_back_total", OF_POOL) =
        "How often a worker had to wait for a place under the limit, or would have had to.";
}

/// Adds the figures of a pool.
pub(super) fn add(families: &mut Families, view: &PoolView, pool: &PoolControl, options: Options) {
    let (name, stats) = (view.name.as_str(), &view.stats);
    families.add(&SENT, &[name], stats.accepted);
    families.add(&FAILED, &[name], view.failed_attempts);
    families.add(&DEAD_LETTERS, &[name], view.dead_lettered);
    families.add(&FULL, &[name], stats.inbox_full);
    families.add(&HELD_BACK, &[name], stats.limits.held_back);
    families.add(&PAUSED, &[name], view.paused);
    families.add(&PARKED, &[name], stats.parked);
    families.add(&OLDEST, &[name], stats.oldest.unwrap_or_default());
    for (class, count) in pool.retries() {
        families.add(&RETRIES, &[name, class.as_str()], count);
    }
    if let Some(limit) = stats.limits.limit {
        families.add(&LIMIT, &[name], limit);
    }
    if let Some(limit) = stats.limits.would_be_limit {
        families.add(&WOULD_BE_LIMIT, &[name], limit);
    }
    inbox(families, view);
    lanes(families, view);
    latencies(families, name, &pool.latencies());
    workers(families, view, &pool.worker_stats(), options);
}

fn inbox(families: &mut Families, view: &PoolView) {
    let (name, stats) = (view.name.as_str(), &view.stats);
    // Events that wait for an operator have given up their room.
    let depth = stats.depth().saturating_sub(stats.parked);
    families.add(&DEPTH, &[name], depth);
    families.add(&SIZE, &[name], stats.capacity);
    // A message that waits for another attempt may have no room of its own.
    let share = (depth as f64 / stats.capacity.max(1) as f64).min(1.0);
    families.add(&UTILIZATION, &[name], share);
}

fn lanes(families: &mut Families, view: &PoolView) {
    let Some(KeyCounts { running, retrying, parked, ready, .. }) = view.keys else { return };
    for (state, keys) in
        [("running", running), ("retrying", retrying), ("parked", parked), ("ready", ready)]
    {
        families.add(&LANES, &[&view.name, state], keys);
    }
}

fn latencies(families: &mut Families, name: &str, latencies: &Latencies) {
    families.add(&LATENCY, &[name], latencies.residence);
    families.add(&QUEUE_TIME, &[name], latencies.queueing);
    families.add(&HANDLING_TIME, &[name], latencies.handling);
}

fn workers(families: &mut Families, view: &PoolView, workers: &[WorkerStats], options: Options) {
    let (name, stats) = (view.name.as_str(), &view.stats);
    let disabled = stats.configured.saturating_sub(stats.live);
    for (state, count) in [
        ("busy", stats.busy),
        ("idle", stats.idle),
        ("starting", stats.starting),
        ("disabled", disabled),
    ] {
        families.add(&WORKERS, &[name, state], count);
    }
    let busy = (stats.busy as f64 / stats.live.max(1) as f64).min(1.0);
    families.add(&BUSY, &[name], busy);
    let is_wedged =
        |worker: &&WorkerStats| worker.busy_for.is_some_and(|time| time >= options.wedged_after);
    families.add(&WEDGED, &[name], workers.iter().filter(is_wedged).count());
    if options.per_worker {
        workers.iter().for_each(|worker| one_worker(families, name, worker));
        return;
    }
    let sum = |of: fn(&WorkerStats) -> u64| workers.iter().map(of).sum::<u64>();
    families.add(&PROCESSED, &[name, "", "true"], sum(|worker| worker.handled));
    families.add(&PROCESSED, &[name, "", "false"], sum(unsuccessful));
    families.add(&RESTARTED, &[name, ""], sum(|worker| worker.restarts));
}

fn one_worker(families: &mut Families, pool: &str, worker: &WorkerStats) {
    let id = worker.name.as_str();
    families.add(&PROCESSED, &[pool, id, "true"], worker.handled);
    families.add(&PROCESSED, &[pool, id, "false"], unsuccessful(worker));
    families.add(&RESTARTED, &[pool, id], worker.restarts);
    if matches!(worker.status, Some(WorkerStatus::Live | WorkerStatus::Leaving)) {
        let in_hand = worker.busy_for.unwrap_or(Duration::ZERO);
        families.add(&IN_HAND, &[pool, id], in_hand);
    }
}

/// Messages that it has had in hand, and that no attempt will help any more.
fn unsuccessful(worker: &WorkerStats) -> u64 {
    worker.failed + worker.dropped + worker.dead_letters.total()
}
