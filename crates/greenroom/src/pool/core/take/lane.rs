//! Taking messages from lanes.

use greenroom_queue::{
    discard::discard,
    lanes::{InOwnLane, LaneId, LaneState},
};

use super::{
    head::advance,
    taken::{BUDGET, Outboxed, QUOTA, TakenMessage},
};
use crate::{
    Actor, Class,
    pool::{
        core::{Core, Key, place::release_lane},
        worker::in_flight::Source,
    },
};

pub(super) fn take_lane<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    mut outbox: Outboxed<'_, A, K>,
    id: LaneId,
    worker: usize,
) -> TakenMessage<A, K> {
    if let Some(lane) = outbox.lanes.get(id) {
        lane.state = LaneState::Running(worker);
    }
    let entry = outbox.pop_lane(id);
    core.queue.note_taken(index, &outbox);
    // Its only message may have been evicted.
    let empty = entry.is_none().then(|| outbox.lanes.close(id));
    core.queue.clear_urgent_if_last(index, &mut outbox);
    let may_drain = outbox.token.is_none();
    let more = outbox.has_ready() || (may_drain && core.queue.shards[index].refill(&mut outbox));
    drop(outbox);
    if more {
        core.queue.wake.mark(index);
    }
    discard(empty);
    entry.map(|entry| (Source::Lane { index, id, run: 0 }, entry))
}

/// The next message of a lane. If the lane is empty, and `heir` continues with the shard, which no
/// worker drains, the next message there, under the same lock.
pub(super) fn next_in_lane<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    id: LaneId,
    run: u32,
    heir: Option<usize>,
) -> TakenMessage<A, K> {
    let mut outbox = core.queue.shards[index].outbox.lock();
    // Keys of this shard wait for a quota, and those of other shards for a turn, as they do behind
    // any shard.
    let others = run + 1 >= QUOTA
        && (outbox.has_ready() || core.queue.shards[index].has_waiting(&outbox))
        || run >= BUDGET && core.queue.wake.any_ready();
    if others {
        drop(outbox);
        release_lane(&core.queue, index, id);
        return None;
    }
    let closed = match outbox.pop_or_close(id, true) {
        InOwnLane::Next(entry) => {
            core.queue.note_taken(index, &outbox);
            return Some((Source::Lane { index, id, run: run + 1 }, entry));
        }
        InOwnLane::Stays => {
            drop(outbox);
            release_lane(&core.queue, index, id);
            return None;
        }
        InOwnLane::Closed(closed) => closed,
    };
    let is_free = outbox.token.is_none() && !outbox.has_ready() && !core.has_ended();
    let taken = match heir.filter(|_| is_free) {
        Some(worker) => {
            let epoch = outbox.grant(worker);
            advance(core, index, outbox, epoch, 0, Class::Urgent)
        }
        None => {
            drop(outbox);
            None
        }
    };
    if let Some(removed) = closed {
        removed.discard();
    }
    taken
}
