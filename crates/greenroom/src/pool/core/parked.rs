//! Keys that wait for an operator because one of their messages has failed for good (K08).
//!
//! ```text
//!   Running ── final failure ──▶ Parked ── release: the message is a dead letter ─▶ Ready
//!                                   │ ──── replay: it is attempted again ─────────▶ Ready
//!                                   └───── remove: the operator has the line ─────▶ (none)
//! ```
//!
//! Queued messages of a parked key go to its lane, as they do behind any owner; no caller waits for
//! a reply there.
//!
//! With separate room for parked keys (`apart`), a message gives up its permit when it enters the
//! lane of a parked key. When the key continues, the message takes a permit again, in debt if none
//! is free. No worker handles it in between, so it must not block messages that are handled.

use std::sync::{Arc, atomic::Ordering};

use greenroom_queue::{
    backlog::wake_in,
    discard::discard,
    entry::retries,
    lanes::{LaneId, LaneState},
    shard::Shard,
    sync::yield_now,
};

use super::{
    Core, Key, OutboxOf,
    drain::give_back,
    notify::{age_of, notify_key_parked, report_dead_letter},
    park::{own_lane, put_first},
    sweep::{resolve_all, take_ports},
    take::{Outboxed, find_lane},
    withdraw::is_withdrawing_here,
};
use crate::pool::frame::gate::dead_letter_if_ruined;
use crate::{
    Actor, CallError, DeadLetter, PoolEvent,
    pool::{
        failed::{Failed, FailedAt},
        pool_payload::Entries,
        worker::in_flight::Source,
    },
};

/// Parks the key that a worker owns, with its failed messages (if they are still there) at the
/// head. Returns the new place of the worker. Callers in the key's line are notified.
pub(crate) fn park_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    source: Source,
    entries: Entries<A, K>,
    failed: Arc<Failed<A::Error>>,
) -> Source {
    let Some((index, id, mut outbox, place)) = own_lane(core, worker, source) else {
        debug_assert!(false, "who parks a key owns it");
        give_back(core, entries);
        return source;
    };
    put_first(core, &mut outbox, id, entries);
    let (mut ports, mut apart) = (Vec::new(), 0);
    if let Some(lane) = outbox.lanes.get(id) {
        lane.state = LaneState::Parked;
        lane.set_failed(failed);
        take_ports::<A, K>(lane, &mut ports);
        if core.key_bounds().apart {
            lane.set_apart(true);
            apart = lane.len() as u64;
        }
    }
    // They are counted from now on, so that the line is bounded.
    let counted_before = outbox.backlog.is_some();
    let mut inbox = core.queue.shards[index].inbox.lock();
    let backlog = Shard::count(&mut inbox, &mut outbox, core.key_bounds());
    if counted_before {
        backlog.park(id.hash);
    }
    let unused = inbox.take_credit();
    drop(inbox);
    core.queue.permits.return_unused(unused);
    let freed = outbox.take_freed();
    drop(outbox);
    if apart > 0 {
        core.queue.permits.give(apart, core);
    }
    resolve_all(&mut ports, || CallError::Parked);
    wake_in(&freed);
    notify_key_parked(core);
    core.frame.lifecycle.notify_progress();
    place
}

/// The messages of a parked lane hold permits again.
fn take_in_again<A: Actor, K: Key>(core: &Core<A, K>, outbox: &mut OutboxOf<A, K>, id: LaneId) {
    if let Some(lane) = outbox.lanes.get(id).filter(|lane| lane.is_apart()) {
        lane.set_apart(false);
        for _ in 0..lane.len() {
            core.queue.permits.take_back();
        }
    }
}

/// The parked lane of this key, under the lock of its shard. With a moment given, only if the key
/// was parked by the failure at that moment. The comparison of keys is user code and runs before
/// the lock is taken.
fn parked_lane<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    key: &K,
    failed_at: Option<FailedAt>,
) -> Option<(usize, LaneId, Outboxed<'a, A, K>)> {
    let hash = core.routing.hash(key);
    let index = hash as usize & (core.queue.shards.len() - 1);
    let candidates = core.queue.shards[index].outbox.lock().lanes.candidates(hash);
    let id = find_lane(candidates, Some(key))?;
    loop {
        let mut outbox = core.queue.shards[index].outbox.lock();
        let lane = outbox.lanes.get(id).filter(|lane| lane.state == LaneState::Parked)?;
        let is_lifted = lane.is_lifted();
        if !is_lifted {
            let parked_at = lane.failed().map(|failed| failed.at);
            let is_meant = failed_at.is_none_or(|at| parked_at == Some(at));
            return is_meant.then_some((index, id, outbox));
        }
        drop(outbox);
        // Its line will be back in a moment, unless the caller itself is examining it.
        if is_withdrawing_here(core) {
            return None;
        }
        yield_now();
    }
}

pub(crate) fn is_parked<A: Actor, K: Key>(core: &Core<A, K>, key: &K) -> bool {
    parked_lane(core, key, None).is_some()
}

/// The lane is no longer parked: it becomes ready, or is closed if it is empty.
fn unpark<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    id: LaneId,
    mut outbox: Outboxed<'_, A, K>,
) {
    let others = outbox.lanes.has_other_parked(id);
    if let Some(backlog) = &mut outbox.backlog {
        backlog.unpark(id.hash, others);
    }
    let Some(lane) = outbox.lanes.get(id) else { return };
    let failed = lane.take_failed();
    let closed = lane.is_empty().then(|| outbox.lanes.close(id));
    if closed.is_none() && outbox.make_ready(id) {
        core.queue.wake.set_urgent(index);
    }
    let goes_on = closed.is_none();
    drop(outbox);
    discard((failed, closed));
    core.frame.notify(PoolEvent::KeyReleased);
    if goes_on {
        core.announce(index);
        dead_letter_if_ruined(core);
    }
    // A stop that waits for the rest has nothing left to wait for here.
    core.frame.lifecycle.notify_progress();
}

/// Lets a parked key continue without the messages that have failed for good; they become dead
/// letters. Returns false if it is not parked.
pub(crate) fn release_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    key: &K,
    failed_at: Option<FailedAt>,
) -> bool {
    let Some((index, id, mut outbox)) = parked_lane(core, key, failed_at) else { return false };
    take_in_again(core, &mut outbox, id);
    let mut failed = outbox.lanes.take_failed(id);
    core.frame.telemetry.counters.waiting.fetch_sub(failed.len(), Ordering::Relaxed);
    let freed = failed.len() as u64;
    unpark(core, index, id, outbox);
    if freed > 0 {
        core.queue.permits.give(freed, core);
    }
    while let Some(entry) = failed.pop_front() {
        let age = age_of(core, &entry);
        let Some(extra) = entry.extra else { continue };
        let Some(failed) = extra.failed.clone() else { continue };
        core.frame.telemetry.counters.dead_letters.count_shared(failed.reason);
        let (error, panic) = (failed.take_error(), failed.panic.clone());
        let (reason, attempts) = (failed.reason, extra.attempts);
        let message = Some(entry.message);
        report_dead_letter(core, DeadLetter { message, reason, error, panic, attempts, age });
        discard(extra);
    }
    core.serve_waiters();
    true
}

/// Lets a parked key continue with the message that has failed, as if it had not. Returns false if
/// the key is not parked.
pub(crate) fn replay_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    key: &K,
    failed_at: Option<FailedAt>,
) -> bool {
    let Some((index, id, mut outbox)) = parked_lane(core, key, failed_at) else { return false };
    take_in_again(core, &mut outbox, id);
    if let Some(lane) = outbox.lanes.get(id) {
        let mut place = 0;
        while let Some(entry) = lane.at_mut(place) {
            if entry.has_failed_for_good()
                && let Some(extra) = &mut entry.extra
            {
                (extra.failures, extra.kills, extra.next.for_good) = (0, 0, false);
            }
            place += 1;
        }
    }
    unpark(core, index, id, outbox);
    true
}

/// Takes out the line of a parked key, with the failed message first. `None` if the key is not
/// parked.
pub(crate) fn remove_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    key: &K,
    failed_at: Option<FailedAt>,
) -> Option<Vec<A::Message>> {
    let (index, id, mut outbox) = parked_lane(core, key, failed_at)?;
    take_in_again(core, &mut outbox, id);
    let mut line = outbox.lanes.empty(id);
    for entry in line.iter() {
        outbox.left(entry);
    }
    core.frame.telemetry.counters.waiting.fetch_sub(retries(&line), Ordering::Relaxed);
    core.frame.telemetry.counters.returned.fetch_add(line.len() as u64, Ordering::Relaxed);
    unpark(core, index, id, outbox);
    core.queue.permits.give(line.len() as u64, core);
    let mut messages = Vec::with_capacity(line.len());
    while let Some(entry) = line.pop_front() {
        messages.push(entry.message);
        discard((entry.extra, entry.key));
    }
    core.serve_waiters();
    Some(messages)
}

/// The number of messages in the lines of parked keys: they are not handled before an operator has
/// decided.
pub(crate) fn parked_messages<A: Actor, K: Key>(core: &Core<A, K>) -> u64 {
    let mut parked = 0;
    for shard in &core.queue.shards {
        for lane in shard.outbox.lock().lanes.iter() {
            if lane.state == LaneState::Parked {
                parked += lane.len() as u64;
            }
        }
    }
    parked
}
