//! Taking a message of a keyed pool after a run of urgent ones, when a normal one is due.

use super::{head::advance, lane::take_lane, taken::TakenMessage};
use crate::{
    Actor, Class,
    pool::core::{Core, Key},
};

/// Like `take_ready`, if a normal message is due: none if no ready shard has one. Urgent messages
/// stay where they are.
#[cold]
pub(crate) fn take_ready_normal<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
    cursor: &mut u32,
) -> TakenMessage<A, K> {
    let from = *cursor;
    for index in (from..from + 64).map(|shard| shard % 64) {
        if core.queue.wake.claim_this(index as usize)
            && let Some(work) = take_normal_from(core, index as usize, worker)
        {
            *cursor = (index + 1) % 64;
            return Some(work);
        }
    }
    None
}

/// Ready lanes and the queue take turns. A shard with anything left stays marked.
fn take_normal_from<A: Actor, K: Key>(
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
    let more = outbox.token.is_none() && shard.refill(&mut outbox);
    let in_queue = more && !outbox.queue.is_empty();
    if (!in_queue || !outbox.ready.queue_first)
        && let Some(id) = outbox.next_normal_ready()
    {
        outbox.ready.queue_first = true;
        return take_lane(core, index, outbox, id, worker);
    }
    if more || outbox.has_ready() {
        core.queue.wake.mark(index);
    }
    if !in_queue {
        return None;
    }
    outbox.ready.queue_first = false;
    let epoch = outbox.grant(worker);
    advance(core, index, outbox, epoch, 0, Class::Normal)
}
