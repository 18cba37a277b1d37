//! Shares that may not start for a while, and workers that sleep meanwhile: whoever lets one back
//! has to see the worker, or be seen by it.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};

use greenroom_queue::{
    shares::{GuardedShares, Limits, ShareQueue},
    sync::{AtomicBool, Mutex},
    wake::{Wake, own_waker},
    watchdog_handle::WatchdogHandle,
};

use crate::checker::{Effort, JoinHandle, block_on, check, spawn, yield_now};

type Shares = ShareQueue<&'static str, u32>;

/// What a handler does at the end of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    GoesOn,
    /// The first attempt holds its share.
    HoldsOnce,
    /// The worker that is awake from the beginning dies with its first attempt.
    DiesOnce,
}

/// Items in the lines of shares, and workers that start them as the product's do.
struct Pool {
    shares: GuardedShares<&'static str, u32>,
    wake: Wake,
    watchdog: WatchdogHandle,
    ending: Ending,
    /// Passes only where the model says so. Not seen by the checker.
    now: AtomicU64,
    /// The clock is to ring then.
    alarm: Mutex<Option<u64>>,
    /// Items that were handled, and those after which all is done. Not seen by the checker.
    handled: AtomicU32,
    expected: u32,
    ended: AtomicBool,
}

/// A share that is held is held for so long.
const HOLD: u64 = 5;

impl Pool {
    fn new(
        ending: Ending,
        expected: u32,
        limits: Limits,
        first: impl FnOnce(&mut Shares),
    ) -> Arc<Self> {
        let mut shares = ShareQueue::new(limits);
        first(&mut shares);
        let pool = Self {
            shares: GuardedShares::new(shares),
            wake: Wake::new(2, 2),
            watchdog: WatchdogHandle::none(),
            ending,
            now: AtomicU64::new(0),
            alarm: Mutex::new(None),
            handled: AtomicU32::new(0),
            expected,
            ended: AtomicBool::new(false),
        };
        // Marks what may start, and winds the clock.
        pool.work(|_, _| {});
        Arc::new(pool)
    }

    /// The product's `frame::shares::work`.
    fn work<R>(&self, work: impl FnOnce(&mut Shares, u64) -> R) -> R {
        let (result, after) = self.shares.work(&self.wake, || self.time(), work);
        self.wind(after);
        result
    }

    /// The product's `frame::shares::change`.
    fn change(&self, change: impl FnOnce(&mut Shares, u64)) {
        self.work(change);
        self.call_worker();
    }

    fn call_worker(&self) {
        if self.wake.any_ready() {
            self.wake.one(&self.watchdog);
        }
    }

    fn time(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn wind(&self, after: Option<std::time::Duration>) {
        let Some(after) = after else { return };
        let at = self.time() + after.as_nanos() as u64;
        let mut alarm = self.alarm.lock();
        *alarm = Some(alarm.map_or(at, |alarm| alarm.min(at)));
    }

    fn is_over(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// One attempt, if something may start. False if the worker has died.
    fn attempt(&self, slot: usize, mortal: bool) -> Option<bool> {
        while self.wake.claim(0).is_some() {}
        self.work(|shares, now| shares.pick(slot, now))?;
        if self.wake.wants_more() {
            self.wake.one(&self.watchdog);
        }
        let handled = self.handled.fetch_add(1, Ordering::Relaxed) + 1;
        if self.ending == Ending::HoldsOnce && handled == 1 {
            self.change(|shares, now| shares.hold(&"a", now + HOLD, now));
        }
        if handled == self.expected {
            self.ended.store(true, Ordering::SeqCst);
            self.wake.all();
        }
        if mortal && self.ending == Ending::DiesOnce {
            self.change(|shares, now| shares.end(slot, now));
            return Some(false);
        }
        self.work(|shares, now| shares.end(slot, now));
        Some(true)
    }

    /// The steps of the product's driver and its `idle`.
    fn worker(self: &Arc<Self>, slot: usize, mortal: bool) -> JoinHandle<()> {
        self.wake.enter(&self.watchdog);
        let pool = self.clone();
        spawn(move || {
            while !pool.is_over() {
                match pool.attempt(slot, mortal) {
                    Some(true) => {}
                    Some(false) => break,
                    None => block_on(async {
                        let token = pool.wake.park(slot, Some(own_waker().await));
                        pool.wake.leave(&pool.watchdog);
                        if pool.is_over() {
                            pool.wake.all();
                        }
                        pool.wake.woken(slot, token).await;
                    }),
                }
            }
            pool.wake.leave(&pool.watchdog);
        })
    }

    /// A clock that rings whenever it was wound, until all is done.
    fn ring_until_over(&self) {
        while !self.is_over() {
            let alarm = self.alarm.lock().take();
            match alarm {
                Some(at) => {
                    self.now.fetch_max(at, Ordering::Relaxed);
                    let again = self.shares.ring(&self.wake, || self.time());
                    self.wind(again);
                    self.call_worker();
                }
                None => yield_now(),
            }
        }
    }

    fn finish(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        assert_eq!(self.handled.load(Ordering::Relaxed), self.expected, "nothing is lost");
        assert_eq!(self.wake.awake(), 0, "whoever was awake has left");
        let waiting: usize =
            self.work(|shares, now| shares.views(now).map(|view| view.waiting).sum());
        assert_eq!(waiting, 0);
    }
}

fn capped() -> Limits {
    Limits { in_hand: Some(1), ..Limits::default() }
}

/// Two items of share "a".
fn two(shares: &mut Shares) {
    shares.add(&"a", 1, false, 0);
    shares.add(&"a", 2, false, 0);
}

/// Either the clock sees the worker idle, or the worker sees that the share has come back. The
/// second item waits for the first, which probes.
pub fn a_hold_that_ends_and_a_worker_that_parks() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(Ending::GoesOn, 2, Limits::default(), |shares| {
            shares.hold(&"a", HOLD, 0);
            two(shares);
        });
        let worker = pool.worker(0, false);
        pool.ring_until_over();
        pool.finish([worker]);
    });
}

/// A share that its own attempt holds, beside a worker that finds nothing else to start.
pub fn an_attempt_that_holds_its_share_and_a_worker_that_parks() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(Ending::HoldsOnce, 2, capped(), two);
        let workers = [pool.worker(0, false), pool.worker(1, false)];
        pool.ring_until_over();
        pool.finish(workers);
    });
}

/// An order that lets a share back, and a worker that has just looked.
pub fn a_share_that_is_resumed_and_a_worker_that_parks() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(Ending::GoesOn, 2, Limits::default(), |shares| {
            shares.pause(&"a", 0);
            two(shares);
        });
        let worker = pool.worker(0, false);
        pool.change(|shares, now| shares.resume(&"a", now));
        pool.finish([worker]);
    });
}

/// A cap that keeps the one worker waiting, and the other, which dies with the attempt that fills
/// it: what that frees is told to somebody.
pub fn a_worker_that_dies_at_the_cap_and_a_worker_that_parks() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(Ending::DiesOnce, 2, capped(), two);
        let workers = [pool.worker(0, true), pool.worker(1, false)];
        pool.finish(workers);
    });
}
