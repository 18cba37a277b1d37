//! How a message gets into a shard: a permit, a place, and a worker that is woken for it.

use std::sync::atomic::Ordering;

use greenroom_queue::{
    discard::discard, entry::Hashed, lock::locked, permits::Refused, urgency::Urgency,
};

use super::{Core, InboxGuard, Key};
use crate::{
    Actor,
    pool::outgoing::{LendOutgoing, OutgoingOf},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Takes a permit and queues a message, or says why not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_and_push(
        &self,
        payload: &mut impl LendOutgoing<A::Message, A::Reply, A::Error>,
        key: Hashed<K>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if self.lacks_key(&key) {
            return Err(Refused::KeyRequired);
        }
        let index = self.shard_of(&key, sender);
        let mut inbox = locked(&self.queue.shards[index].inbox);
        if inbox.is_fast() && !payload.is_urgent() && self.is_timely() {
            inbox.push_fast(payload, key, self.frame.telemetry.coarse.coarse_stamp());
            return Ok(());
        }
        self.look_and_push(index, inbox, payload, key, urgency)
    }

    /// As `take_and_push`, with a look at every rare duty.
    #[inline(never)]
    fn look_and_push(
        &self,
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
            // The key is made again when the message comes back; dropping a key is the user's code.
            discard(key);
            return Err(Refused::NotNow);
        }
        if inbox.credit == 0 && !inbox.closed {
            let credit = self.queue.credit.load(Ordering::Relaxed);
            self.queue.credit_map.note(index);
            inbox.credit = self.queue.permits.take_known(credit.min(inbox.headroom()));
        }
        if inbox.credit == 0 {
            let wanted = self.queue.credit.load(Ordering::Relaxed).min(inbox.headroom()).max(1);
            drop(inbox);
            let in_blocks = urgency == Urgency::CanStepAside
                && self.settings.functions.overflow.waits()
                && self.goes_on_uncounted();
            return payload.lent(&mut |payload| {
                let key = (key.0.take(), key.1);
                self.search_and_push(index, wanted, payload, key, in_blocks)
            });
        }
        inbox.credit -= 1;
        let first = self.place(index, &mut inbox, payload, key);
        let unmeasured = self.frame.telemetry.coarse.unmeasured_from(inbox.accepted);
        inbox.open_fast_path(unmeasured);
        drop(inbox);
        if first {
            self.announce(index);
        }
        Ok(())
    }

    #[cold]
    fn search_and_push(
        &self,
        index: usize,
        wanted: u64,
        payload: &mut OutgoingOf<A>,
        key: Hashed<K>,
        in_blocks: bool,
    ) -> Result<(), Refused> {
        let taken = match in_blocks {
            true => self.queue.permits.try_take_block(wanted, self)?,
            false => self.queue.permits.try_take(wanted, self)?,
        };
        let pushed = self.push(index, payload, key);
        let unused = if pushed.is_ok() { taken - 1 } else { taken };
        self.give_credit(index, unused);
        pushed
    }

    /// Leaves permits in a shard, unless a sender waits for them.
    pub(super) fn give_credit(&self, index: usize, permits: u64) {
        if permits == 0 {
            return;
        }
        let mut inbox = self.queue.shards[index].inbox.lock();
        self.queue.credit_map.note(index);
        // A waiter says first that it waits, and then takes back the credit of noted shards,
        // under this lock.
        let has_headroom = inbox.headroom() >= permits;
        if inbox.closed || self.queue.permits.is_starved() || !has_headroom {
            drop(inbox);
            return self.queue.permits.give(permits, self);
        }
        inbox.credit += permits;
    }

    /// Queues a message whose permit has been taken, unless the pool is closing, or its key may
    /// have no more.
    pub(crate) fn push(
        &self,
        index: usize,
        payload: &mut OutgoingOf<A>,
        key: Hashed<K>,
    ) -> Result<(), Refused> {
        self.push_in_line(index, payload, key, false)
    }

    /// As `push`. `waited` if its sender has stood in line behind its key.
    pub(crate) fn push_in_line(
        &self,
        index: usize,
        payload: &mut OutgoingOf<A>,
        key: Hashed<K>,
        waited: bool,
    ) -> Result<(), Refused> {
        if self.push_quietly(index, payload, key, waited)? {
            self.announce(index);
        }
        Ok(())
    }

    /// As `push`, but the caller announces the shard if that is needed (true), whatever happens.
    pub(crate) fn push_quietly(
        &self,
        index: usize,
        payload: &mut OutgoingOf<A>,
        key: Hashed<K>,
        waited: bool,
    ) -> Result<bool, Refused> {
        if self.lacks_key(&key) {
            return Err(Refused::KeyRequired);
        }
        let mut inbox = self.queue.shards[index].inbox.lock();
        if inbox.headroom() == 0 {
            drop(inbox);
            return self.push_counted(index, payload, key, waited);
        }
        if inbox.closed {
            return Err(Refused::Closed);
        }
        Ok(self.place(index, &mut inbox, payload, key))
    }

    /// Puts a message into the inbox of its shard. True if the shard is to be announced. In one
    /// place, because what is passed to the inbox is a type of its own at each.
    #[inline]
    pub(super) fn place<P: LendOutgoing<A::Message, A::Reply, A::Error>>(
        &self,
        index: usize,
        inbox: &mut InboxGuard<'_, A, K>,
        payload: &mut P,
        key: Hashed<K>,
    ) -> bool {
        let (is_late, urgent) = (self.is_late(), payload.is_urgent());
        let stamp = |number| self.frame.telemetry.coarse.stamp(number, is_late);
        let first = inbox.push(payload, key, stamp);
        if urgent {
            self.queue.wake.set_urgent(index);
        }
        first
    }

    /// Marks a shard as ready and wakes a worker for it. Not for workers that go on to look for
    /// work themselves.
    pub(crate) fn announce(&self, index: usize) {
        self.queue.wake.mark(index);
        if self.keyed() {
            self.queue.wake.one(&self.frame.clock.watchdog);
        } else {
            self.queue.wake.one_for(index, &self.frame.clock.watchdog);
        }
    }
}
