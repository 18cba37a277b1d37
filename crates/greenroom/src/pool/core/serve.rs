//! A call that is handed to an idle worker, past queue and ports.
//!
//! Nothing is overtaken: it is done only if nothing is ready in the pool, and if the shard of the
//! caller's address is not scheduled, which means that nothing is queued there. The permit is taken
//! there, under the lock that closes the shard: a pool that closes later waits for the message as
//! for any other.
//!
//! A worker that does not take the message that it was handed, because it has to end or an urgent
//! message comes first, queues it. The watchdog does so if a worker does not come.

use std::{
    sync::{Arc, atomic::Ordering},
    task::Waker,
};

use greenroom_queue::{entry::Entry, handoff::Retracted, lock::locked, stamp::Stamp};

use super::{Core, HandoffSlotOf, Key};
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

impl<A: Actor, K: Key> Core<A, K> {
    /// Gives a message to an idle worker that is woken for it, and that wakes the caller once there
    /// is a reply. None if that is impossible; the message then stays with the caller, and is
    /// to be queued.
    #[inline]
    pub(crate) fn serve(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<HandoffWaitOf<'_, A>> {
        match self.settings.derived.uses_handoff && !self.queue.wake.any_ready() {
            true => self.hand(message, sender, caller),
            false => None,
        }
    }

    /// As `serve`, if nothing is queued. A function of its own, so that a call that finds something
    /// queued keeps nothing for it.
    #[inline(never)]
    fn hand(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<HandoffWaitOf<'_, A>> {
        let wake = &self.queue.wake;
        if !wake.may_hand() || wake.has_urgent() || slot_at_work(self.identity()).is_some() {
            return None;
        }
        let index = self.shard_of(&(None, 0), sender);
        // Foreign code: before anything is to be given back.
        let mut waiter = Some(caller.clone());
        let stamp = self.admit_handoff(index)?;
        if !self.handoff.hands.load(Ordering::Relaxed) {
            self.handoff.hands.store(true, Ordering::Relaxed);
        }
        let mut at = None;
        let mut put = |worker| {
            let handoff_slot: &HandoffSlotOf<A> = self.handoff_slot(worker);
            let handed = handoff_slot.hand(message, stamp, &mut waiter);
            at = handed.then_some(handoff_slot);
            handed
        };
        if !wake.hand(&self.frame.clock.watchdog, &mut put) {
            self.take_admission_back(index);
        }
        at.map(HandoffWait)
    }

    /// The handoff slot of this worker.
    pub(crate) fn handoff_slot(&self, worker: usize) -> &Arc<HandoffSlotOf<A>> {
        self.desk(worker).handoff.get_or_init(|| Arc::new(HandoffSlotOf::<A>::new()))
    }

    /// Shows every handoff slot at which a caller may wait for a worker that has been woken.
    fn show_handoff_slots(&self, show: &mut dyn FnMut(&HandoffSlotOf<A>)) {
        let slots = if self.handoff.hands.load(Ordering::Relaxed) { self.desks.len() } else { 0 };
        for worker in 0..slots {
            if let Some(handoff_slot) = self.desk(worker).handoff.get() {
                show(handoff_slot);
            }
        }
    }

    /// Messages that were handed to workers which have not come for them yet.
    pub(super) fn handed(&self) -> usize {
        let mut handed = 0;
        self.show_handoff_slots(&mut |slot| handed += usize::from(slot.has_handed()));
        handed
    }

    /// When the oldest of these was handed over.
    pub(crate) fn oldest_handed(&self) -> Option<Stamp> {
        let mut oldest = None;
        self.show_handoff_slots(&mut |slot| {
            oldest = Stamp::earliest(&[oldest, slot.handed_at(|| self.now())]);
        });
        oldest
    }

    /// Takes back messages that were handed to workers, so many at most.
    pub(super) fn take_handed(&self, most: usize) -> Entries<A, K> {
        let mut taken = Entries::<A, K>::new();
        self.show_handoff_slots(&mut |slot| {
            if taken.len() < most
                && let Some(retracted) = slot.retract(|| self.now())
            {
                taken.push_back(into_entry(retracted));
            }
        });
        taken
    }

    /// The message that this worker was handed goes to others. For a worker that has left the idle
    /// list, and does not take it.
    #[cold]
    pub(crate) fn take_back_handed(&self, worker: usize) {
        let handoff_slot = self.desk(worker).handoff.get();
        self.take_home(handoff_slot.and_then(|handoff_slot| handoff_slot.retract(|| self.now())));
    }

    /// Messages handed to workers that have not come since the last time go to others, if there are
    /// others: in the queue of the only worker, later messages could overtake them. Returns for how
    /// many messages workers have come so far.
    pub(super) fn take_back_what_is_left(&self) -> u64 {
        // A hint: a worker that leaves after the look may still be the last but one.
        let any_other = self.frame.membership.live.load(Ordering::Relaxed) > 1;
        let mut all_came = 0_u64;
        self.show_handoff_slots(&mut |slot| {
            let (came, left) = slot.retract_what_is_left(any_other, || self.now());
            self.take_home(left);
            all_came = all_came.wrapping_add(came);
        });
        all_came
    }

    /// The stamp of a message for which the clock was not read. The clock goes again from here on:
    /// it serves later holders of the message.
    fn now(&self) -> Stamp {
        Stamp::coarse(self.frame.telemetry.coarse.set())
    }

    /// Queues what a worker has not taken.
    fn take_home(&self, retracted: Option<RetractedOf<A>>) {
        let Some(retracted) = retracted else { return };
        self.re_home(Entries::<A, K>::only(into_entry(retracted)));
        settle_if_over(self);
    }

    /// Takes a permit for a message that nothing waits before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn admit_handoff(&self, index: usize) -> Option<Stamp> {
        let is_late = self.is_late();
        let mut inbox = locked(&self.queue.shards[index].inbox);
        if inbox.scheduled || inbox.closed {
            return None;
        }
        if inbox.credit == 0 {
            self.queue.credit_map.note(index);
            inbox.credit = self.queue.permits.take_known(self.queue.credit.load(Ordering::Relaxed));
        }
        inbox.credit = inbox.credit.checked_sub(1)?;
        let number = inbox.accepted;
        inbox.accepted += 1;
        drop(inbox);
        Some(self.frame.telemetry.coarse.stamp_of_handoff(
            number,
            is_late,
            self.queue.wake.is_quick(),
        ))
    }

    /// The admitted message was not handled: it is not accepted after all.
    #[cold]
    fn take_admission_back(&self, index: usize) {
        self.queue.shards[index].inbox.lock().accepted -= 1;
        self.give_credit(index, 1);
        // A stop may have seen one message more than there is.
        self.frame.lifecycle.notify_progress();
    }
}

/// The entry of a message that was handed to a worker.
fn into_entry<M, R, E, K>(
    (message, stamp, port): Retracted<PoolExchange<M, R, E>>,
) -> Entry<PoolPayload<M, R, E>, K> {
    let extra = Some(Extra::new(Some(port)));
    Entry { message, extra, key: None, hash: 0, urgent: false, stamp }
}
