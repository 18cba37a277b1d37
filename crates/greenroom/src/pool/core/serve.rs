//! A call that is served at the hatch of an idle worker, by whoever makes it: past queue, lists and ports.
//!
//! Nothing is overtaken: it is done only where nothing is ready in the pool, and where the shard of the caller's address is not
//! scheduled, which means that nothing is queued there. The permit is taken there, under the lock that closes the shard: a pool that
//! closes later waits for the message as for any other.

use std::{
    hash::Hash,
    sync::atomic::{Ordering, fence},
    time::Instant,
};

use super::{Core, HatchOf};
use crate::{
    Actor,
    pool::{
        hatch::Left,
        in_place::{self, Lent},
        lock::locked,
        occupied::slot_at_work,
        stamp::Stamp,
    },
    reply::Reply,
};

/// What a call that was made in place comes to.
pub(crate) enum Served<R, E> {
    Reply(R),
    /// The handler has suspended, for example: it is to come.
    Later(Reply<R, E>),
}

/// Workers that a caller looks at to find one that is idle.
const WORKERS_ASKED: usize = 4;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Has an idle worker handle a message here and now. None where that cannot be; the message is where it was then, and to be
    /// queued.
    #[inline]
    pub(crate) fn serve(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
    ) -> Option<Served<A::Reply, A::Error>> {
        match self.settings.serves_at_hatch && self.may_serve() {
            true => self.serve_now(message, sender),
            false => None,
        }
    }

    fn may_serve(&self) -> bool {
        !self.wake.any_ready()
            && !self.wake.is_urged()
            && slot_at_work(self.identity()).is_none()
            && self.may_drive()
    }

    fn serve_now(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
    ) -> Option<Served<A::Reply, A::Error>> {
        let (lent, hatch) = self.lend_idle()?;
        // A pool whose calls are all served here has nobody awake, and its clock goes only while it is watched.
        self.clock.bell.ring();
        let index = self.shard_of(&(None, 0), sender);
        let Some(stamp) = self.admit_to_hatch(index) else {
            lent.leave();
            return None;
        };
        if hatch.put(message, stamp) {
            match self.drive(lent, || hatch.leave()) {
                Left::Reply(reply) => return Some(Served::Reply(reply)),
                Left::Later(reply) => return Some(Served::Later(reply)),
                // It had something else to do.
                Left::Message(back) => *message = Some(back),
            }
        } else {
            // Whom it has served before waits for a handler that has suspended.
            lent.leave();
        }
        self.withdraw(index);
        None
    }

    /// Borrows the work of a worker that lies idle: of the same one each time, on the same thread, and of others on others, so that
    /// what they use stays in the caches there.
    fn lend_idle(&self) -> Option<(Lent<'_>, &HatchOf<A>)> {
        let (workers, first) = (self.hatches.len(), in_place::number_of_thread());
        (0..workers.min(WORKERS_ASKED)).find_map(|place| {
            let worker = first.wrapping_add(place) % workers;
            if !self.wake.is_lying(worker) {
                return None;
            }
            let hatch = self.hatches.at(worker).get()?;
            Some((in_place::lend(self.seats.at(worker))?, &**hatch))
        })
    }

    /// Polls a worker once, and now and then takes the time of that.
    #[inline]
    pub(super) fn drive<T>(&self, lent: Lent<'_>, then: impl FnOnce() -> T) -> T {
        let since = in_place::is_timed().then(Instant::now);
        let then = lent.drive(then);
        if let Some(since) = since {
            self.tell_pace(since.elapsed());
        }
        then
    }

    /// Takes a permit for a message that nothing waits before.
    fn admit_to_hatch(&self, index: usize) -> Option<Stamp> {
        let is_late = self.is_late();
        let mut inbox = locked(&self.shards[index].inbox);
        if inbox.scheduled || inbox.closed {
            return None;
        }
        if inbox.credit == 0 {
            self.credit_map.note(index);
            inbox.credit = self.permits.take_known(self.credit.load(Ordering::Relaxed));
        }
        inbox.credit = inbox.credit.checked_sub(1)?;
        let number = inbox.accepted;
        inbox.accepted += 1;
        drop(inbox);
        Some(self.coarse.stamp(number, is_late))
    }

    /// What was admitted was not handled: it is not accepted after all.
    #[cold]
    fn withdraw(&self, index: usize) {
        self.shards[index].inbox.lock().accepted -= 1;
        self.give_credit(index, 1);
    }

    /// For a worker that has served a caller where it lies: sees to what follows from a message that is settled.
    #[inline]
    pub(crate) fn has_served(&self) {
        fence(Ordering::SeqCst);
        self.serve_waiters();
        self.look_if_drained();
        self.tell_progress();
    }
}

#[cfg(test)]
mod tests;
