//! A call that is handed directly to an idle worker, without queue and ports.
//!
//! Nothing is overtaken: it happens only if nothing is ready in the pool and the shard of the
//! caller's address is not scheduled, which means that nothing is queued there. The permit is taken
//! from that shard, under the lock that closes it: a pool that closes later waits for this message
//! like for any other.
//!
//! A worker that does not take the message that it was handed (because it has to end, or because an
//! urgent message comes first) queues it. The watchdog does so if a worker does not come.

use std::{
    sync::{Arc, atomic::Ordering},
    task::Waker,
};

use greenroom_queue::{entry::Entry, handoff::Retracted, lock::locked, stamp::Stamp};

use super::{Core, HandoffSlotOf, Key, mail::re_home, push::give_credit};
use crate::pool::frame::gate::settle_if_over;
use crate::{
    Actor,
    delivery::Extra,
    pool::{
        handoff::{
            pool_exchange::PoolExchange,
            reentrancy::slot_at_work,
            wait::{HandoffWait, HandoffWaitOf},
        },
        pool_payload::{Entries, PoolPayload},
    },
};

/// A message that was taken back.
type RetractedOf<A> =
    Retracted<PoolExchange<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>>;

/// Gives a message to an idle worker, which is woken for it and wakes the caller once there is a
/// reply. Returns `None` if that is impossible; the message then stays with the caller and is to be
/// queued. A separate function, so that a call that finds something queued keeps nothing for it.
#[inline(never)]
pub(super) fn hand<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    message: &mut Option<A::Message>,
    sender: u32,
    caller: &Waker,
) -> Option<HandoffWaitOf<'a, A>> {
    let wake = &core.queue.wake;
    if !wake.may_hand() || wake.has_urgent() || slot_at_work(core.identity()).is_some() {
        return None;
    }
    let index = core.shard_of(&(None, 0), sender);
    // Cloning a waker is foreign code, so it comes before anything that would have to be given
    // back.
    let mut waiter = Some(caller.clone());
    let stamp = admit_handoff(core, index)?;
    if !core.handoff.hands.load(Ordering::Relaxed) {
        core.handoff.hands.store(true, Ordering::Relaxed);
    }
    let mut at = None;
    let mut put = |worker| {
        let handoff_slot: &HandoffSlotOf<A> = handoff_slot(core, worker);
        let handed = handoff_slot.hand(message, stamp, &mut waiter);
        at = handed.then_some(handoff_slot);
        handed
    };
    if !wake.hand(&core.frame.clock.watchdog, &mut put) {
        take_admission_back(core, index);
    }
    at.map(HandoffWait)
}

/// The handoff slot of this worker.
pub(crate) fn handoff_slot<A: Actor, K: Key>(
    core: &Core<A, K>,
    worker: usize,
) -> &Arc<HandoffSlotOf<A>> {
    core.desk(worker).handoff.get_or_init(|| Arc::new(HandoffSlotOf::<A>::new()))
}

/// Calls `show` with every handoff slot at which a caller may wait for a worker that has been
/// woken.
fn show_handoff_slots<A: Actor, K: Key>(
    core: &Core<A, K>,
    show: &mut dyn FnMut(&HandoffSlotOf<A>),
) {
    let slots = if core.handoff.hands.load(Ordering::Relaxed) { core.desks.len() } else { 0 };
    for worker in 0..slots {
        if let Some(handoff_slot) = core.desk(worker).handoff.get() {
            show(handoff_slot);
        }
    }
}

/// The number of messages that were handed to workers which have not come for them yet.
pub(super) fn handed<A: Actor, K: Key>(core: &Core<A, K>) -> usize {
    let mut handed = 0;
    show_handoff_slots(core, &mut |slot| handed += usize::from(slot.has_handed()));
    handed
}

/// The time when the oldest of these was handed over.
pub(crate) fn oldest_handed<A: Actor, K: Key>(core: &Core<A, K>) -> Option<Stamp> {
    let mut oldest = None;
    show_handoff_slots(core, &mut |slot| {
        oldest = Stamp::earliest(&[oldest, slot.handed_at(|| now(core))]);
    });
    oldest
}

/// Takes back messages that were handed to workers, at most this many.
pub(super) fn take_handed<A: Actor, K: Key>(core: &Core<A, K>, most: usize) -> Entries<A, K> {
    let mut taken = Entries::<A, K>::new();
    show_handoff_slots(core, &mut |slot| {
        if taken.len() < most
            && let Some(retracted) = slot.retract(|| now(core))
        {
            taken.push_back(into_entry(retracted));
        }
    });
    taken
}

/// Queues the message that this worker was handed for others. For a worker that has left the idle
/// list and does not take the message.
#[cold]
pub(crate) fn take_back_handed<A: Actor, K: Key>(core: &Core<A, K>, worker: usize) {
    let handoff_slot = core.desk(worker).handoff.get();
    take_home(core, handoff_slot.and_then(|handoff_slot| handoff_slot.retract(|| now(core))));
}

/// Messages handed to workers that have not come since the last call go to other workers, if there
/// are any: in the queue of the only worker, later messages could overtake them. Returns the number
/// of messages that workers have come for so far.
pub(super) fn take_back_what_is_left<A: Actor, K: Key>(core: &Core<A, K>) -> u64 {
    // A hint: a worker that leaves after this load may still be the last but one.
    let any_other = core.frame.membership.live.load(Ordering::Relaxed) > 1;
    let mut all_came = 0_u64;
    show_handoff_slots(core, &mut |slot| {
        let (came, left) = slot.retract_what_is_left(any_other, || now(core));
        take_home(core, left);
        all_came = all_came.wrapping_add(came);
    });
    all_came
}

/// The stamp of a message for which the clock was not read. This starts the clock again: the stamp
/// also serves later holders of the message.
fn now<A: Actor, K: Key>(core: &Core<A, K>) -> Stamp {
    Stamp::coarse(core.frame.telemetry.coarse.set())
}

/// Queues a message that a worker has not taken.
fn take_home<A: Actor, K: Key>(core: &Core<A, K>, retracted: Option<RetractedOf<A>>) {
    let Some(retracted) = retracted else { return };
    re_home(core, Entries::<A, K>::only(into_entry(retracted)));
    settle_if_over(core);
}

/// Takes a permit for a message that has no other message before it.
#[cfg_attr(not(debug_assertions), inline(always))]
fn admit_handoff<A: Actor, K: Key>(core: &Core<A, K>, index: usize) -> Option<Stamp> {
    let is_late = core.is_late();
    let mut inbox = locked(&core.queue.shards[index].inbox);
    if inbox.scheduled || inbox.closed {
        return None;
    }
    if inbox.credit == 0 {
        core.queue.credit_map.note(index);
        inbox.credit = core.queue.permits.take_known(core.queue.credit.load(Ordering::Relaxed));
    }
    inbox.credit = inbox.credit.checked_sub(1)?;
    let number = inbox.accepted;
    inbox.accepted += 1;
    drop(inbox);
    Some(core.frame.telemetry.coarse.stamp_of_handoff(number, is_late, core.queue.wake.is_quick()))
}

/// The admitted message was not handled: takes its acceptance back.
#[cold]
fn take_admission_back<A: Actor, K: Key>(core: &Core<A, K>, index: usize) {
    core.queue.shards[index].inbox.lock().accepted -= 1;
    give_credit(core, index, 1);
    // A stop may have seen one message more than there is.
    core.frame.lifecycle.notify_progress();
}

/// The entry of a message that was handed to a worker.
fn into_entry<M, R, E, K>(
    (message, stamp, port): Retracted<PoolExchange<M, R, E>>,
) -> Entry<PoolPayload<M, R, E>, K> {
    let extra = Some(Extra::new(Some(port)));
    Entry { message, extra, key: None, hash: 0, urgent: false, stamp }
}
