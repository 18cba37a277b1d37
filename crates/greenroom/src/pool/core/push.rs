//! How a message gets into a shard: a permit, a place, and a worker that is woken for it.

use std::sync::atomic::Ordering;

use greenroom_queue::{
    discard::discard, entry::Hashed, lock::locked, permits::Refused, urgency::Urgency,
};

use super::{
    Core, InboxGuard, Key,
    backlog::{lacks_key, place, push_counted},
};
use crate::{
    Actor,
    pool::outgoing::{LendOutgoing, OutgoingOf},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Marks a shard as ready and wakes a worker for it. Not for workers that look for work
    /// themselves next.
    pub(crate) fn announce(&self, index: usize) {
        self.queue.wake.mark(index);
        if self.keyed() {
            self.queue.wake.one(&self.frame.clock.watchdog);
        } else {
            self.queue.wake.one_for(index, &self.frame.clock.watchdog);
        }
    }
}

/// Takes a permit and queues a message, or returns the reason why not.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn take_and_push<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut impl LendOutgoing<A::Message, A::Reply, A::Error>,
    key: Hashed<K>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    if lacks_key(core, &key) {
        return Err(Refused::KeyRequired);
    }
    let index = core.shard_of(&key, sender);
    let mut inbox = locked(&core.queue.shards[index].inbox);
    if inbox.is_fast() && !payload.is_urgent() && core.is_timely() {
        inbox.push_fast(payload, key, core.frame.telemetry.coarse.coarse_stamp());
        return Ok(());
    }
    look_and_push(core, index, inbox, payload, key, urgency)
}

/// Like `take_and_push`, with a check of every rare duty.
#[inline(never)]
fn look_and_push<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    mut inbox: InboxGuard<'_, A, K>,
    payload: &mut impl LendOutgoing<A::Message, A::Reply, A::Error>,
    mut key: Hashed<K>,
    urgency: Urgency,
) -> Result<(), Refused> {
    inbox.end_fast_path();
    if inbox.turn.is_over && urgency == Urgency::CanStepAside {
        inbox.turn.is_over = false;
        drop(inbox);
        // The key is made again when the message comes back; dropping a key runs user code.
        discard(key);
        return Err(Refused::NotNow);
    }
    if inbox.credit == 0 && !inbox.closed {
        let credit = core.queue.credit.load(Ordering::Relaxed);
        core.queue.credit_map.note(index);
        inbox.credit = core.queue.permits.take_known(credit.min(inbox.headroom()));
    }
    if inbox.credit == 0 {
        let wanted = core.queue.credit.load(Ordering::Relaxed).min(inbox.headroom()).max(1);
        drop(inbox);
        let in_blocks = urgency == Urgency::CanStepAside
            && core.settings.functions.overflow.waits()
            && core.goes_on_uncounted();
        return payload.lent(&mut |payload| {
            let key = (key.0.take(), key.1);
            search_and_push(core, index, wanted, payload, key, in_blocks)
        });
    }
    inbox.credit -= 1;
    let first = place(core, index, &mut inbox, payload, key);
    let unmeasured = core.frame.telemetry.coarse.unmeasured_from(inbox.accepted);
    inbox.open_fast_path(unmeasured);
    drop(inbox);
    if first {
        core.announce(index);
    }
    Ok(())
}

#[cold]
fn search_and_push<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    wanted: u64,
    payload: &mut OutgoingOf<A>,
    key: Hashed<K>,
    in_blocks: bool,
) -> Result<(), Refused> {
    let taken = match in_blocks {
        true => core.queue.permits.try_take_block(wanted, core)?,
        false => core.queue.permits.try_take(wanted, core)?,
    };
    let pushed = push_in_line(core, index, payload, key, false);
    let unused = if pushed.is_ok() { taken - 1 } else { taken };
    give_credit(core, index, unused);
    pushed
}

/// Leaves permits in a shard, unless a sender waits for them.
pub(super) fn give_credit<A: Actor, K: Key>(core: &Core<A, K>, index: usize, permits: u64) {
    if permits == 0 {
        return;
    }
    let mut inbox = core.queue.shards[index].inbox.lock();
    core.queue.credit_map.note(index);
    // A waiter first announces that it waits, and then takes back the credit of noted shards under
    // this lock.
    let has_headroom = inbox.headroom() >= permits;
    if inbox.closed || core.queue.permits.is_starved() || !has_headroom {
        drop(inbox);
        return core.queue.permits.give(permits, core);
    }
    inbox.credit += permits;
}

/// Queues a message whose permit has been taken, unless the pool is closing or its key may have no
/// more messages. `waited` is true if its sender has waited in line behind the key.
pub(crate) fn push_in_line<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    payload: &mut OutgoingOf<A>,
    key: Hashed<K>,
    waited: bool,
) -> Result<(), Refused> {
    if push_quietly(core, index, payload, key, waited)? {
        core.announce(index);
    }
    Ok(())
}

/// Like `push_in_line`, but the caller announces the shard if needed (true), whatever happens.
pub(crate) fn push_quietly<A: Actor, K: Key>(
    core: &Core<A, K>,
    index: usize,
    payload: &mut OutgoingOf<A>,
    key: Hashed<K>,
    waited: bool,
) -> Result<bool, Refused> {
    if lacks_key(core, &key) {
        return Err(Refused::KeyRequired);
    }
    let mut inbox = core.queue.shards[index].inbox.lock();
    if inbox.headroom() == 0 {
        drop(inbox);
        return push_counted(core, index, payload, key, waited);
    }
    if inbox.closed {
        return Err(Refused::Closed);
    }
    Ok(place(core, index, &mut inbox, payload, key))
}
