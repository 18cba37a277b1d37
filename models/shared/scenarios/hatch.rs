//! Callers at the hatch of a worker whose work they do: each has the reply to its own message, or that message back, and neither a
//! wake-up nor what was announced meanwhile is lost.

use std::sync::Arc;

use super::{in_place::step_aside, wakes::Pool};
use crate::{
    checker::{Effort, JoinHandle, block_on, check, spawn},
    pool::{
        hatch::{Hatch, Left},
        in_place::{Task, lend},
        seat::Seat,
        stamp::Stamp,
        wake::Rest,
    },
};

type Small = Hatch<u32, u32, ()>;

/// What a message is answered with.
fn answer(message: u32) -> u32 {
    message + 100
}

/// The only worker of a pool: claims what is announced, and serves who comes to its hatch.
struct Clerk {
    pool: Arc<Pool>,
    hatch: Arc<Small>,
    /// Its handlers do, once.
    suspends: bool,
    awake: bool,
}

impl Clerk {
    async fn work(mut self) {
        while !self.pool.is_over() {
            while self.pool.claim_one() {
                step_aside().await;
            }
            if !self.pool.is_over() {
                self.lie_down_and_serve().await;
            }
        }
    }

    /// The steps of the product's `idle`: callers are served where it lies, unless the handler suspends.
    async fn lie_down_and_serve(&mut self) {
        let (wake, bell) = (&self.pool.wake, &self.pool.bell);
        self.awake = false;
        self.pool.lie_down(0);
        let mut rest = Rest::default();
        loop {
            let mut given = None;
            let is_called = || {
                given = self.hatch.take();
                given.is_some()
            };
            if !wake.woken_or_called(0, &mut rest, is_called).await {
                break;
            }
            if self.suspends {
                wake.forget(0, bell);
                step_aside().await;
                wake.enter(bell);
                self.awake = true;
            }
            let (message, _) = given.expect("it was there");
            self.hatch.answer(answer(message)).expect("somebody waits");
            if self.awake {
                return;
            }
        }
        wake.errand(0);
        self.awake = true;
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        match self.awake {
            true => self.pool.wake.leave(&self.pool.bell),
            false => self.pool.wake.forget(0, &self.pool.bell),
        }
    }
}

struct Counter {
    pool: Arc<Pool>,
    seat: Arc<Seat>,
    hatch: Arc<Small>,
}

impl Counter {
    /// With a worker that is awake before anything else happens. It ends when what is announced once has been claimed.
    fn open(suspends: bool) -> (Arc<Self>, JoinHandle<()>) {
        let (pool, seat) = (Pool::new(1, 1, 1), Arc::new(Seat::default()));
        let hatch = Arc::new(Hatch::new());
        pool.wake.enter(&pool.bell);
        let clerk = Clerk { pool: pool.clone(), hatch: hatch.clone(), suspends, awake: true };
        let task = Task::new(&seat, clerk.work());
        (Arc::new(Self { pool, seat, hatch }), spawn(move || block_on(task)))
    }

    /// The steps of the product's `serve_now`, without permits. What is left when the worker has ended is compared then.
    fn call(&self, message: u32) -> Option<Left<u32, u32, ()>> {
        if !self.pool.wake.is_lying(0) {
            return None;
        }
        let lent = lend(&self.seat)?;
        if !self.hatch.put(&mut Some(message), Stamp::default()) {
            lent.leave();
            return None;
        }
        Some(lent.drive(|| self.hatch.leave()))
    }

    fn caller(self: &Arc<Self>, message: u32) -> JoinHandle<Option<Left<u32, u32, ()>>> {
        let counter = self.clone();
        spawn(move || counter.call(message))
    }

    /// Something is to be claimed.
    fn announce(&self) {
        self.pool.wake.mark(0);
        self.pool.wake.one(&self.pool.bell);
    }
}

fn compare(message: u32, left: Option<Left<u32, u32, ()>>) {
    match left {
        None => {}
        Some(Left::Message(back)) => assert_eq!(back, message),
        Some(Left::Reply(reply)) => assert_eq!(reply, answer(message)),
        Some(Left::Later(reply)) => assert_eq!(reply.given(), Some(answer(message))),
    }
}

fn try_out(suspends: bool, callers: u32) {
    let (counter, worker) = Counter::open(suspends);
    let others: Vec<_> = (1..callers).map(|message| counter.caller(message)).collect();
    let own = counter.call(0);
    counter.announce();
    let left: Vec<_> =
        others.into_iter().map(|caller| caller.join().expect("it did not panic")).collect();
    counter.pool.finish([worker]);
    (0..).zip(std::iter::once(own).chain(left)).for_each(|(message, left)| compare(message, left));
}

/// Served at once, or not at all.
pub fn a_caller_at_the_hatch_of_a_worker_that_lies_down() {
    check(Effort::Changes(3), || try_out(false, 1));
}

/// One after the other, whoever comes first.
pub fn two_callers_at_one_hatch() {
    check(Effort::Changes(2), || try_out(false, 2));
}

/// The worker's own task goes on while the caller leaves.
pub fn a_caller_at_the_hatch_of_a_handler_that_suspends() {
    check(Effort::Changes(3), || try_out(true, 1));
}

/// The second comes while the first waits, or after it has its reply.
pub fn two_callers_and_a_handler_that_suspends() {
    check(Effort::Changes(2), || try_out(true, 2));
}
