//! Inspecting keys: they are counted on request, and never while messages pass.

use std::{collections::HashMap, sync::Arc, time::Duration};

use greenroom_queue::{
    lanes::{Lane, LaneId, LaneState},
    payload::Payload,
    shard::ShardOutbox,
    stamp::Stamp,
};
use tokio::time::Instant;

use super::{Core, Key, take::find_lane};
use crate::{
    Actor,
    pool::{
        failed::Failed,
        keys::figures::{KeyCounts, KeyInHand, KeyState, KeyStatus, LongestLine, ParkedKey},
        worker::in_flight::Source,
    },
};

/// The state of a key, taken out from under the lock.
struct FoundKey<E> {
    state: LaneState,
    /// True if the key is only in the queue, without a lane.
    queued: bool,
    /// The failed attempt of the message that waits for a retry or for an operator, and the number
    /// of its attempts.
    failed: Option<(Arc<Failed<E>>, u32)>,
    /// The time of that attempt; for a parked key, that of the failure that parked it.
    failed_at: Option<Instant>,
    /// When the next attempt is due.
    due: Stamp,
    waiting: usize,
    oldest: Option<Stamp>,
}

/// Feeds the key of a measured message that has been settled to the sketch.
pub(crate) fn feed_sketch<A: Actor, K: Key>(
    core: &Core<A, K>,
    source: Source,
    messages: u64,
    took: Duration,
) {
    let key = match source {
        Source::Head { index, epoch, .. } => {
            let mut outbox = core.queue.shards[index].outbox.lock();
            // The token no longer needs it.
            let in_hand = outbox.held(epoch).and_then(|token| token.in_hand.take());
            in_hand.map(|(hash, key)| (hash, Arc::new(key)))
        }
        Source::Lane { index, id, .. } => {
            let mut outbox = core.queue.shards[index].outbox.lock();
            outbox.lanes.get(id).and_then(|lane| Some((id.hash, lane.key.share()?)))
        }
        _ => None,
    };
    if let (Some((hash, key)), Some(sketch)) = (key, &core.frame.telemetry.sketch) {
        sketch.feed(hash, key, messages, took);
    }
}

pub(crate) fn key_counts<A: Actor, K: Key>(core: &Core<A, K>) -> KeyCounts {
    let mut counts = KeyCounts::default();
    for shard in &core.queue.shards {
        let outbox = shard.outbox.lock();
        let in_hand = outbox.token.as_ref().is_some_and(|token| token.in_hand.is_some());
        counts.running += usize::from(in_hand);
        for lane in outbox.lanes.iter() {
            let of_state = match lane.state {
                LaneState::Running(_) => &mut counts.running,
                LaneState::Retrying => &mut counts.retrying,
                LaneState::Parked => &mut counts.parked,
                LaneState::Ready | LaneState::Shared(_) => &mut counts.ready,
            };
            *of_state += 1;
            counts.waiting += behind(lane);
        }
    }
    counts
}

pub(crate) fn parked_keys<A: Actor, K: Key>(core: &Core<A, K>) -> Vec<ParkedKey<K>> {
    let mut all = Vec::new();
    for shard in &core.queue.shards {
        let mut outbox = shard.outbox.lock();
        for lane in outbox.lanes.iter_mut() {
            if let Some(failed) = lane.failed().cloned()
                && let Some(key) = lane.key.share()
            {
                let (since, reason) = (failed.at.elapsed(), failed.reason);
                all.push(ParkedKey { key, since, reason, waiting: behind(lane) });
            }
        }
    }
    all
}

pub(crate) fn keys_in_hand<A: Actor, K: Key>(core: &Core<A, K>) -> Vec<KeyInHand<K>> {
    let (mut all, mut first_polls) = (Vec::new(), Vec::new());
    for shard in &core.queue.shards {
        let mut outbox = shard.outbox.lock();
        if let Some(token) = &outbox.token
            && let Some((hash, _)) = &token.in_hand
        {
            first_polls.push((token.worker, *hash));
        }
        for lane in outbox.lanes.iter_mut() {
            if let LaneState::Running(worker) = lane.state
                && let Some(key) = lane.key.share()
            {
                all.push(KeyInHand { worker, key });
            }
        }
    }
    // The token's key is moved to the next step as it is: sharing it would cost every message.
    if let Some(sketch) = &core.frame.telemetry.sketch {
        for (worker, hash) in first_polls {
            if let Some(key) = sketch.find(hash) {
                all.push(KeyInHand { worker, key });
            }
        }
    }
    all
}

pub(crate) fn why_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    key: &K,
    describe: impl FnOnce(&A::Error) -> String,
) -> Option<KeyStatus> {
    let hash = core.routing.hash(key);
    let index = hash as usize & (core.queue.shards.len() - 1);
    let candidates = core.queue.shards[index].outbox.lock().lanes.candidates(hash);
    let lane = find_lane(candidates, Some(key));
    let found = find_key(core, index, hash, lane)?;
    let now = core.frame.telemetry.coarse.real();
    let failed = found.failed.as_ref();
    let worker = failed.map_or(0, |(failed, _)| failed.worker);
    let (state, attempt) = match found.state {
        _ if found.queued => (KeyState::Queued, 0),
        LaneState::Running(worker) => running(core, worker, now),
        LaneState::Ready | LaneState::Shared(_) => {
            (KeyState::Ready, failed.map_or(0, |(_, attempts)| *attempts))
        }
        LaneState::Retrying => {
            let next = Duration::from_nanos(found.due.nanos().saturating_sub(now));
            let since = failed.map_or(Duration::ZERO, |(failed, _)| failed.at.elapsed());
            let attempt = failed.map_or(0, |(_, attempts)| *attempts);
            (KeyState::Retrying { since, next, worker }, attempt)
        }
        LaneState::Parked => {
            let (failed, attempts) = failed?;
            let since = failed.at.elapsed();
            (KeyState::Parked { since, reason: failed.reason, worker }, *attempts)
        }
    };
    let failed_at = found.failed_at;
    let last_error = found.failed.and_then(|(failed, _)| failed.describe(describe));
    let oldest = found.oldest.map(|stamp| stamp.age(now));
    Some(KeyStatus { state, waiting: found.waiting, attempt, last_error, failed_at, oldest })
}

fn running<A: Actor, K: Key>(core: &Core<A, K>, worker: usize, now: u64) -> (KeyState, u32) {
    let slot_state = core.frame.membership.slots.at(worker);
    let since = slot_state.busy_since(|| now).map_or(Duration::ZERO, |since| since.age(now));
    (KeyState::Running { worker, since }, slot_state.attempt())
}

fn find_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    hash: u32,
    id: Option<LaneId>,
) -> Option<FoundKey<A::Error>> {
    let shard = &core.queue.shards[index];
    let mut outbox = shard.outbox.lock();
    let inbox = shard.inbox.lock();
    let queued = inbox.urgent.iter().chain(outbox.queue.iter()).chain(inbox.queue.iter());
    let (mut waiting, mut oldest) = (0, None);
    for entry in queued {
        if entry.key.is_some() && entry.hash == hash {
            waiting += 1;
            oldest = oldest.or(Some(entry.stamp));
        }
    }
    drop(inbox);
    if let Some(lane) = id.and_then(|id| outbox.lanes.get(id)) {
        let first = lane.iter().find(|entry| !entry.is_retry());
        let head = lane.front().filter(|head| head.is_retry());
        let attempts = head.and_then(|head| head.extra.as_ref()).map_or(1, |e| e.attempts);
        let failed = head.and_then(|head| head.extra.as_ref()?.failed.clone());
        let parked_by = lane.failed().or(failed.as_ref());
        let failed_at = parked_by.map(|failed| failed.at);
        return Some(FoundKey {
            failed_at,
            state: lane.state,
            queued: false,
            failed: failed.or(lane.failed().cloned()).map(|failed| (failed, attempts)),
            due: head.map_or(Stamp::default(), |head| head.stamp),
            waiting: waiting + behind(lane),
            oldest: first.map(|entry| entry.stamp).or(oldest),
        });
    }
    let holder = holder_of(&outbox, hash);
    if holder.is_none() && waiting == 0 {
        return None;
    }
    let state = LaneState::Running(holder.unwrap_or(0));
    let (failed, failed_at, due) = (None, None, Stamp::default());
    Some(FoundKey { state, queued: holder.is_none(), failed, failed_at, due, waiting, oldest })
}

/// The key with the most messages, in a lane or in the queue.
pub(crate) fn longest_line<A: Actor, K: Key>(core: &Core<A, K>) -> Option<LongestLine<K>> {
    let mut longest: Option<(usize, u32, Option<Arc<K>>)> = None;
    for shard in &core.queue.shards {
        let mut outbox = shard.outbox.lock();
        let inbox = shard.inbox.lock();
        let mut lines: HashMap<u32, usize, foldhash::fast::FixedState> = HashMap::default();
        let queued = inbox.urgent.iter().chain(outbox.queue.iter()).chain(inbox.queue.iter());
        for entry in queued {
            if entry.key.is_some() {
                *lines.entry(entry.hash).or_default() += 1;
            }
        }
        for lane in outbox.lanes.iter() {
            if behind(lane) > 0 {
                *lines.entry(lane.id.hash).or_default() += behind(lane);
            }
        }
        let most = lines.into_iter().max_by_key(|(_, messages)| *messages);
        if let Some((hash, messages)) = most
            && longest.as_ref().is_none_or(|(length, ..)| messages > *length)
        {
            let lane = outbox.lanes.iter_mut().find(|lane| lane.id.hash == hash);
            longest = Some((messages, hash, lane.and_then(|lane| lane.key.share())));
        }
    }
    let (messages, hash, key) = longest?;
    Some(LongestLine {
        key: key.or_else(|| core.frame.telemetry.sketch.as_ref()?.find(hash)),
        messages,
    })
}

/// The number of messages that wait in a lane behind the one that has failed.
fn behind<T: Payload, K>(lane: &Lane<T, K>) -> usize {
    lane.len() - lane.retried()
}

/// The worker that has a key with this hash in hand, as the holder of the token.
fn holder_of<T: Payload, K>(outbox: &ShardOutbox<T, K>, hash: u32) -> Option<usize> {
    let token = outbox.token.as_ref()?;
    let in_hand = token.in_hand.as_ref().is_some_and(|(own, _)| *own == hash);
    in_hand.then_some(token.worker)
}
