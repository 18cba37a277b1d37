//! Taking messages in a keyed pool: from ready lanes, and from the queue of a shard.
//!
//! In a keyed pool, everything between "the token is mine" and "the key in hand is published"
//! happens under one hold of the outbox's lock, so the watchdog never finds a token whose holder
//! has moved on. The one exception is the comparison of keys, which is user code: it runs without
//! the lock, and the token says so while it runs.
//!
//! Whether the pool has ended is checked under the same lock: a worker that ends the pool over a
//! message gives up that message's key afterwards, and a worker that then finds the key free must
//! not continue with it.

pub(super) mod behind;
mod head;
mod lane;
mod near;
mod normal;
mod taken;

pub(super) use {behind::find_lane, taken::Outboxed};
pub(crate) use {
    head::take_at_head,
    near::{NextNear, TakenNear, take_behind_near, take_ready_near},
    normal::take_ready_normal,
    taken::{QUOTA, TakenMessage, budget},
};

use std::sync::atomic::Ordering;

use self::{
    head::advance,
    lane::{next_in_lane, take_lane},
};
use super::{
    Core, Key,
    place::{demote, release},
};
use crate::{Actor, Class, pool::worker::in_flight::Source};

impl<A: Actor, K: Key> Core<A, K> {
    /// True if nothing more may be started.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_ended(&self) -> bool {
        self.frame.lifecycle.ended.load(Ordering::Acquire)
    }
}

/// Looks for work in every ready shard, starting after the one that was served last.
pub(crate) fn take_ready<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    cursor: &mut u32,
) -> TakenMessage<A, K> {
    while let Some(index) = core.queue.wake.claim(*cursor) {
        *cursor = (index as u32 + 1) % 64;
        if let Some(work) = take_from(core, index, worker) {
            return Some(work);
        }
    }
    None
}

/// The next message from the same source as the last one, or `None` if the worker's place has been
/// given up. `stays` is true if a worker whose lane is empty may continue with its shard.
pub(crate) fn take_behind<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    source: Source,
    stays: bool,
) -> TakenMessage<A, K> {
    match source {
        Source::None | Source::Mailbox => None,
        Source::Shared { .. } | Source::BetweenRuns { .. } => {
            release(&core.queue, worker, source);
            None
        }
        Source::Head { index, epoch, run, .. } if run < budget(&core.queue.wake) => {
            let mut outbox = core.queue.shards[index].outbox.lock();
            let held = outbox.held(epoch).is_some();
            if held && !core.has_ended() {
                return advance(core, index, outbox, epoch, run + 1, Class::Urgent);
            }
            drop(outbox);
            if held {
                release(&core.queue, worker, source);
                return None;
            }
            take_behind(core, worker, demote(&core.queue, worker, source), stays)
        }
        Source::Head { .. } => {
            release(&core.queue, worker, source);
            None
        }
        Source::Lane { index, id, run } => {
            next_in_lane(core, index, id, run, stays.then_some(worker))
        }
    }
}

/// Urgent messages first. Otherwise ready lanes and the queue take turns. The queue of a keyed
/// shard belongs to the holder of the token.
fn take_from<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    worker: usize,
) -> TakenMessage<A, K> {
    let Some(shard) = core.queue.shards.get(index) else {
        return core.sharing.as_ref()?.take_strays(core);
    };
    let mut outbox = shard.outbox.lock();
    if core.has_ended() {
        return None;
    }
    let may_drain = outbox.token.is_none();
    let urged = core.queue.wake.has_urgent_at(index);
    if urged && let Some(id) = outbox.next_urgent_ready() {
        return take_lane(core, index, outbox, id, worker);
    }
    let urged = urged && may_drain && shard.inbox.lock().has_urgent();
    let queue_first = outbox.ready.queue_first && may_drain && shard.refill(&mut outbox);
    if !urged
        && !queue_first
        && let Some(id) = outbox.next_ready()
    {
        outbox.ready.queue_first = true;
        return take_lane(core, index, outbox, id, worker);
    }
    if !urged {
        outbox.ready.queue_first = false;
    }
    if !may_drain {
        return None;
    }
    if outbox.has_ready() {
        core.queue.wake.mark(index);
    }
    let epoch = outbox.grant(worker);
    advance(core, index, outbox, epoch, 0, Class::Urgent)
}

/// Takes a message from a keyed shard other than `but` that has urgent messages and that no worker
/// drains.
pub(crate) fn take_ready_urgent<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    but: Option<usize>,
) -> TakenMessage<A, K> {
    let but = but.map_or(0, |index| 1_u64 << index);
    let mut urged = core.queue.wake.urgent_shards() & !but;
    while urged != 0 {
        let index = urged.trailing_zeros() as usize;
        urged &= urged - 1;
        if core.queue.wake.claim_this(index)
            && let Some(work) = take_from(core, index, worker)
        {
            return Some(work);
        }
    }
    None
}
