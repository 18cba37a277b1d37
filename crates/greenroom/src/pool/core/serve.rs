//! A call that is served at the handoff slot of an idle worker, past queue and ports: by its
//! caller, or by the worker, which is woken.
//!
//! Nothing is overtaken: it is done only if nothing is ready in the pool, and if the shard of the
//! caller's address is not scheduled, which means that nothing is queued there. The permit is taken
//! there, under the lock that closes the shard: a pool that closes later waits for the message as
//! for any other.
//!
//! A worker that does not take the message that it was handed, because it has to end or an urgent
//! message comes first, queues it. The watchdog does so if a worker does not come.

use std::{
    hash::Hash,
    sync::atomic::{Ordering, fence},
    task::Waker,
    time::Instant,
};

use greenroom_queue::{
    entry::Entry,
    handoff::{InPlaceOutcome, Retracted},
    lock::locked,
    stamp::Stamp,
};

use super::{Core, HandoffSlotOf, Queued};
use crate::{
    Actor,
    delivery::Extra,
    pool::{
        handoff::{
            pool_exchange::PoolExchange,
            reentrancy::slot_at_work,
            served::{HandoffWait, Served, ServedBy},
        },
        pool_payload::PoolPayload,
        worker::in_place::{self, LentWork},
    },
};

/// A message that was taken back.
type RetractedOf<A> =
    Retracted<PoolExchange<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>>;

/// Workers that a caller looks at to find one that is idle.
const WORKERS_ASKED: usize = 4;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Has an idle worker handle a message: here and now, or on its own task, which then wakes
    /// the caller. None if that is impossible; the message then stays with the caller, and is
    /// to be queued.
    #[inline]
    pub(crate) fn serve(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<ServedBy<'_, A>> {
        match self.settings.derived.uses_handoff && !self.queue.wake.any_ready() {
            true => self.serve_first(message, sender, caller),
            false => None,
        }
    }

    /// As `serve`, if nothing is queued. A function of its own, so that a call that finds something
    /// queued keeps nothing for it.
    #[inline(never)]
    fn serve_first(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<ServedBy<'_, A>> {
        let in_place = self.settings.config.handling.calls_in_place;
        let may = if in_place { self.may_run_in_place() } else { self.queue.wake.may_hand() };
        if !may || self.queue.wake.has_urgent() || slot_at_work(self.identity()).is_some() {
            return None;
        }
        match in_place {
            true => self.serve_now(message, sender),
            // Not if callers do the work: there one call in many goes the usual way, and its worker
            // then searches.
            false => self.hand(message, sender, caller),
        }
    }

    /// Gives a message to an idle worker that is woken for it.
    fn hand(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<ServedBy<'_, A>> {
        let index = self.shard_of(&(None, 0), sender);
        // Foreign code: before anything is to be given back.
        let mut waiter = Some(caller.clone());
        let stamp = self.admit_handoff(index)?;
        if !self.handoff.hands.load(Ordering::Relaxed) {
            self.handoff.hands.store(true, Ordering::Relaxed);
        }
        let mut at = None;
        let put = |worker| {
            let handoff_slot: &HandoffSlotOf<A> = self.handoff.slot(worker);
            let handed = handoff_slot.hand(message, stamp, &mut waiter);
            at = handed.then_some(handoff_slot);
            handed
        };
        if !self.queue.wake.hand(&self.clock.watchdog, put) {
            self.take_admission_back(index);
        }
        at.map(|handoff_slot| Served::Handed(HandoffWait(handoff_slot)))
    }

    /// Messages that were handed to workers which have not come for them yet.
    pub(super) fn handed(&self) -> usize {
        self.handoff.slots_of_waiters().filter(|handoff_slot| handoff_slot.has_handed()).count()
    }

    /// When the oldest of these was handed over.
    pub(crate) fn oldest_handed(&self) -> Option<Stamp> {
        let handed_at = |handoff_slot: &HandoffSlotOf<A>| handoff_slot.handed_at(|| self.now());
        self.handoff.slots_of_waiters().filter_map(handed_at).min_by_key(|stamp| stamp.nanos())
    }

    /// Takes back messages that were handed to workers, one after the other.
    pub(super) fn take_handed(&self) -> impl Iterator<Item = Queued<A, K>> {
        let retracted = self
            .handoff
            .slots_of_waiters()
            .filter_map(|handoff_slot| handoff_slot.retract(|| self.now()));
        retracted.map(into_entry)
    }

    /// The message that this worker was handed goes to others. For a worker that has left the idle
    /// list, and does not take it.
    #[cold]
    pub(crate) fn take_back_handed(&self, worker: usize) {
        let handoff_slot = self.handoff.slots.at(worker).get();
        self.take_home(handoff_slot.and_then(|handoff_slot| handoff_slot.retract(|| self.now())));
    }

    /// Messages handed to workers that have not come since the last time go to others, if there are
    /// others: in the queue of the only worker, later messages could overtake them. Returns for how
    /// many messages workers have come so far.
    pub(super) fn take_back_what_is_left(&self) -> u64 {
        // Pairs with nothing: a hint. A worker that leaves after the look may still be the
        // last but one.
        let any_other = self.membership.live.load(Ordering::SeqCst) > 1;
        let look = |handoff_slot: &HandoffSlotOf<A>| {
            let (came, left) = handoff_slot.retract_what_is_left(any_other, || self.now());
            self.take_home(left);
            came
        };
        self.handoff.slots_of_waiters().map(look).fold(0, u64::wrapping_add)
    }

    /// The stamp of a message for which the clock was not read. The clock goes again from here on:
    /// it serves later holders of the message.
    fn now(&self) -> Stamp {
        Stamp::coarse(self.telemetry.coarse.set())
    }

    /// Queues what a worker has not taken.
    fn take_home(&self, retracted: Option<RetractedOf<A>>) {
        let Some(retracted) = retracted else { return };
        self.re_home(vec![into_entry(retracted)]);
        self.settle_if_over();
    }

    fn serve_now(&self, message: &mut Option<A::Message>, sender: u32) -> Option<ServedBy<'_, A>> {
        let (lent, handoff_slot) = self.lend_idle()?;
        // A pool whose calls are all served here has no worker awake, and its clock goes only while
        // it is watched.
        self.clock.watchdog.call();
        let index = self.shard_of(&(None, 0), sender);
        let Some(stamp) = self.admit_handoff(index) else {
            lent.leave();
            return None;
        };
        if handoff_slot.put(message, stamp) {
            match self.run_in_place(lent, || handoff_slot.leave()) {
                InPlaceOutcome::Response(reply) => return Some(Served::Reply(reply)),
                InPlaceOutcome::Later(reply) => return Some(Served::Later(reply)),
                // It had something else to do.
                InPlaceOutcome::Message(back) => *message = Some(back),
            }
        } else {
            // An earlier caller of the worker waits for a handler that has suspended.
            lent.leave();
        }
        self.take_admission_back(index);
        None
    }

    /// Borrows the work of an idle worker: of the same one each time on the same thread, and of
    /// others on other threads, so that its data stays in the caches there.
    fn lend_idle(&self) -> Option<(LentWork<'_>, &HandoffSlotOf<A>)> {
        let (workers, first) = (self.handoff.slots.len(), in_place::number_of_thread());
        (0..workers.min(WORKERS_ASKED)).find_map(|place| {
            let worker = first.wrapping_add(place) % workers;
            if !self.queue.wake.is_parked(worker) {
                return None;
            }
            let handoff_slot = self.handoff.slots.at(worker).get()?;
            Some((in_place::lend(&self.membership.slots.at(worker).work)?, &**handoff_slot))
        })
    }

    /// Polls a worker once, and now and then takes the time of that.
    #[inline]
    pub(super) fn run_in_place<T>(&self, lent: LentWork<'_>, then: impl FnOnce() -> T) -> T {
        let since = in_place::is_timed().then(Instant::now);
        let then = lent.run(then);
        if let Some(since) = since {
            self.note_pace(since.elapsed());
        }
        then
    }

    /// Takes a permit for a message that nothing waits before.
    #[inline(always)]
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
        Some(self.telemetry.coarse.stamp_of_handoff(number, is_late, self.queue.wake.is_quick()))
    }

    /// The admitted message was not handled: it is not accepted after all.
    #[cold]
    fn take_admission_back(&self, index: usize) {
        self.queue.shards[index].inbox.lock().accepted -= 1;
        self.give_credit(index, 1);
        // A stop may have seen one message more than there is.
        self.lifecycle.notify_progress();
    }

    /// For a worker that has served a caller while idle: runs post-settlement bookkeeping.
    #[inline]
    pub(crate) fn has_served(&self) {
        // Pairs with the fences in `grant_to_all` and `next_progress`: a waiter or a stop sees
        // the message that has just been settled, or this worker sees `starved` or `closing`.
        // Otherwise one of them is never told.
        fence(Ordering::SeqCst);
        self.serve_waiters_at_rest();
        self.lifecycle.notify_progress();
    }
}

/// The entry of a message that was handed to a worker.
fn into_entry<M, R, E, K>(
    (message, stamp, port): Retracted<PoolExchange<M, R, E>>,
) -> Entry<PoolPayload<M, R, E>, K> {
    let extra = Some(Extra::new(Some(port)));
    Entry { message, extra, key: None, hash: 0, urgent: false, stamp }
}

#[cfg(test)]
mod tests;
