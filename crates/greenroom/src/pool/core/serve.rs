//! A call that is served at the hatch of an idle worker, by whoever makes it: past queue, lists and ports.
//!
//! Nothing is overtaken: it is done only where nothing is ready in the pool, and where the shard of the caller's address is not
//! scheduled, which means that nothing is queued there. The permit is taken there, under the lock that closes the shard: a pool that
//! closes later waits for the message as for any other.

use std::{hash::Hash, time::Instant};

use super::{Core, HatchOf};
use crate::{
    Actor,
    pool::{hatch::Left, in_place, lock::locked, occupied::slot_at_work, stamp::Stamp},
    reply::Reply,
};

/// What a call that was made in place comes to.
pub(crate) enum Served<R, E> {
    Reply(R),
    /// The handler has suspended, for example: it is to come.
    Later(Reply<R, E>),
}

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
        self.wake.idle() > 0
            && !self.wake.any_ready()
            && !self.wake.is_urged()
            && slot_at_work(self.identity()).is_none()
            && self.may_drive()
    }

    fn serve_now(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
    ) -> Option<Served<A::Reply, A::Error>> {
        let index = self.shard_of(&(None, 0), sender);
        let stamp = self.admit_to_hatch(index)?;
        let worker = self.wake.borrow(&self.clock.bell);
        let left = worker.map(|worker| (worker, self.drive_with(worker, message, stamp)));
        match left {
            Some((_, Some(Left::Reply(reply)))) => return Some(Served::Reply(reply)),
            Some((_, Some(Left::Later(reply)))) => return Some(Served::Later(reply)),
            // It had something else to do.
            Some((_, Some(Left::Message(back)))) => *message = Some(back),
            // Others do its work just now.
            Some((worker, None)) => self.wake.rouse(worker),
            None => {}
        }
        self.withdraw(index);
        None
    }

    /// Takes a permit for a message that nothing waits before.
    fn admit_to_hatch(&self, index: usize) -> Option<Stamp> {
        let is_late = self.is_late();
        let mut inbox = locked(&self.shards[index].inbox);
        if inbox.scheduled || inbox.closed {
            return None;
        }
        if inbox.credit == 0 {
            inbox.credit = self.permits.take_known(self.credit.load(super::Ordering::Relaxed));
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

    /// Polls this worker once, with a message at its hatch. None where somebody else does its work.
    fn drive_with(
        &self,
        worker: usize,
        message: &mut Option<A::Message>,
        stamp: Stamp,
    ) -> Option<Left<A::Message, A::Reply, A::Error>> {
        let hatch: &HatchOf<A> = self.hatches.at(worker).get()?;
        let given = message.take()?;
        let Some(lent) = in_place::lend(self.seats.at(worker)) else {
            *message = Some(given);
            return None;
        };
        if let Err(given) = hatch.put(given, stamp) {
            // It is to be polled all the same: it was taken off the list.
            lent.drive(|| {});
            return Some(Left::Message(given));
        }
        let since = in_place::is_timed().then(Instant::now);
        let left = lent.drive(|| hatch.leave());
        if let Some(since) = since {
            self.tell_pace(since.elapsed());
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use super::{Core, Served};
    use crate::{
        Actor, Context, Pool,
        pool::{Urgency, seat::LEAVE},
    };

    struct Echo;

    impl Actor for Echo {
        type Message = u64;
        type Reply = u64;
        type Error = ();

        async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<u64, ()> {
            Ok(number)
        }
    }

    type Echoes = Arc<Core<Echo, Infallible>>;

    /// A pool whose only worker has lain down.
    async fn idle(capacity: usize) -> (Pool<Echo>, Echoes) {
        let builder = Pool::new(|_| Echo).workers(1).capacity(capacity).calls_in_place();
        let core = builder.quick_handlers(true).spawn_core().await.unwrap();
        let pool = Pool::spawned(core.clone());
        while core.wake.idle() == 0 {
            tokio::task::yield_now().await;
        }
        (pool, core)
    }

    fn serve(core: &Echoes) -> Result<u64, u64> {
        let mut message = Some(7);
        match core.serve(&mut message, 0) {
            Some(Served::Reply(reply)) => Ok(reply),
            Some(Served::Later(_)) => panic!("it replies at once"),
            None => Err(message.expect("it is left")),
        }
    }

    /// Accepted so far, and permits in use.
    fn counts(core: &Echoes) -> (u64, usize) {
        (core.accepted(), core.permits.in_use(core.as_ref()))
    }

    #[tokio::test]
    async fn an_idle_worker_serves_a_call_and_lies_down_again() {
        let (pool, core) = idle(10).await;
        let credit = |core: &Echoes| core.shards[0].inbox.lock().credit as usize;
        for calls in 1..=5 {
            assert_eq!(serve(&core), Ok(7));
            assert_eq!(core.wake.idle(), 1);
            assert_eq!(
                counts(&core),
                (calls, credit(&core)),
                "what is not unused credit is given back"
            );
        }
        assert!(pool.stats().ledger_holds());
    }

    #[tokio::test]
    async fn what_waits_is_not_overtaken() {
        let (_pool, core) = idle(10).await;
        core.take_and_push(&mut Some(1), (None, 0), 0, Urgency::Now).unwrap();
        assert_eq!(serve(&core), Err(7));
        assert_eq!(core.accepted(), 1);
    }

    #[tokio::test]
    async fn a_worker_that_starts_nothing_more_gives_the_message_back() {
        let (_pool, core) = idle(1).await;
        core.seats.at(0).order(LEAVE);
        assert_eq!(serve(&core), Err(7));
        assert_eq!(core.accepted(), 0);
        let unused = core.shards[0].inbox.lock().credit as usize;
        assert_eq!(core.permits.in_use(core.as_ref()), unused, "the permit is there again");
    }

    #[tokio::test]
    async fn without_room_nothing_is_served() {
        let (_pool, core) = idle(1).await;
        core.permits.try_take(1, core.as_ref()).unwrap();
        assert_eq!(serve(&core), Err(7));
        core.permits.give(1, core.as_ref());
        let queued = core.take_and_push(&mut Some(1), (None, 0), 0, Urgency::Now);
        assert_eq!(queued, Ok(()), "who queues it looks further");
    }

    #[tokio::test]
    async fn a_pool_that_is_closed_serves_nobody() {
        let (_pool, core) = idle(10).await;
        core.close();
        assert_eq!(serve(&core), Err(7));
        assert_eq!(core.accepted(), 0);
    }
}
