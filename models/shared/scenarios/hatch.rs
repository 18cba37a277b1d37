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

    /// The steps of the product around its `idle`: who has served a caller at once lies down without a look at the queues.
    async fn lie_down_and_serve(&mut self) {
        loop {
            self.awake = false;
            self.pool.lie_down(0);
            self.pool.wake.woken(0).await;
            self.awake = true;
            if self.pool.is_over() {
                return;
            }
            let Some((message, _)) = self.hatch.take() else { return };
            if self.suspends {
                self.pool.wake.leave(&self.pool.bell);
                step_aside().await;
                self.pool.wake.enter(&self.pool.bell);
            }
            self.hatch.answer(answer(message)).expect("somebody waits");
            if self.suspends || self.pool.wake.any_ready() {
                return;
            }
        }
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
        self.pool.wake.borrow(&self.pool.bell)?;
        let Some(lent) = lend(&self.seat) else {
            self.pool.wake.rouse(0);
            return None;
        };
        if let Err(message) = self.hatch.put(message, Stamp::default()) {
            lent.drive(|| {});
            return Some(Left::Message(message));
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
