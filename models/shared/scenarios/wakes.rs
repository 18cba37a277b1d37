//! Sleeping and waking, without queues: a bit in the ready map is the work.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Poll, Waker},
};

use greenroom_queue::{
    sync::AtomicBool,
    wake::{ParkToken, Wake, WakeReason, own_waker},
    watchdog::{self, Watched},
    watchdog_handle::WatchdogHandle,
};

use crate::checker::{Effort, JoinHandle, block_on, check, spawn, yield_now};

/// Workers that do nothing but claim bits, and count them.
pub(super) struct Pool {
    pub(super) wake: Wake,
    pub(super) watchdog: WatchdogHandle,
    /// Bits claimed, and those after which all is done. Not seen by the checker.
    claimed: AtomicU32,
    expected: u32,
    ended: AtomicBool,
}

impl Pool {
    pub(super) fn new(workers: usize, awake: usize, expected: u32) -> Arc<Self> {
        Arc::new(Self {
            wake: Wake::new(workers, awake),
            watchdog: WatchdogHandle::none(),
            claimed: AtomicU32::new(0),
            expected,
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn send(&self, shard: usize) {
        self.wake.mark(shard);
        self.wake.one(&self.watchdog);
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.wake.all();
    }

    pub(super) fn claim_one(&self) -> bool {
        if self.wake.claim(0).is_none() {
            return false;
        }
        if self.claimed.fetch_add(1, Ordering::Relaxed) + 1 == self.expected {
            self.end();
        } else if self.wake.wants_more() {
            self.wake.one(&self.watchdog);
        }
        true
    }

    fn claim_all(&self) {
        while self.claim_one() {}
    }

    /// The steps of the product's `idle`, before it waits.
    /// Says what it was woken for.
    pub(super) async fn woken(&self, worker: usize, park_token: ParkToken) -> WakeReason {
        self.wake.woken(worker, park_token).await
    }

    pub(super) fn park(&self, worker: usize, waker: Option<Waker>) -> ParkToken {
        let park_token = self.wake.park(worker, waker);
        self.wake.leave(&self.watchdog);
        if self.is_over() {
            self.wake.all();
        }
        park_token
    }

    fn idle(&self, worker: usize) {
        block_on(async {
            let park_token = self.park(worker, Some(own_waker().await));
            self.woken(worker, park_token).await
        });
    }

    /// The steps of the product's `search`.
    fn search(&self) {
        let searches = self.wake.begin_search();
        yield_now();
        if searches {
            self.wake.end_search();
        }
    }

    /// A worker that is awake already.
    fn work(&self, worker: usize, searches: bool) {
        while !self.is_over() {
            self.claim_all();
            if searches {
                self.search();
                self.claim_all();
            }
            if !self.is_over() {
                self.idle(worker);
            }
        }
        self.wake.leave(&self.watchdog);
    }

    /// A worker that is awake before anything else happens.
    fn awake(self: &Arc<Self>, worker: usize, searches: bool) -> JoinHandle<()> {
        self.wake.enter(&self.watchdog);
        let pool = self.clone();
        spawn(move || pool.work(worker, searches))
    }

    /// A worker that sleeps before anything else happens.
    pub(super) fn asleep(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let park_token = self.wake.park(worker, None);
        let pool = self.clone();
        spawn(move || {
            block_on(pool.woken(worker, park_token));
            pool.work(worker, false);
        })
    }

    /// A worker whose handler has waited, as handlers usually do: it does not count as awake before
    /// it is woken.
    fn uncounted(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            pool.claim_all();
            if pool.is_over() {
                return;
            }
            block_on(async {
                let park_token = pool.wake.park(worker, Some(own_waker().await));
                pool.wake.pass_on(&pool.watchdog);
                if pool.is_over() {
                    pool.wake.all();
                }
                pool.woken(worker, park_token).await
            });
            pool.work(worker, false);
        })
    }

    fn sender(self: &Arc<Self>, shard: usize) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || pool.send(shard))
    }

    pub(super) fn finish(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        assert_eq!(self.claimed.load(Ordering::Relaxed), self.expected, "no bit is lost");
        assert_eq!(self.wake.awake(), 0, "whoever was awake has left");
    }
}

/// As the product's: others have a turn, and then it is polled again.
pub(super) async fn step_aside() {
    let mut stepped = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Point 7: either the sender sees that there is room for one more, or the worker sees the bit.
pub fn a_sender_and_the_last_worker_that_parks() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(1, 1, 1);
        let worker = pool.awake(0, false);
        pool.send(3);
        pool.finish([worker]);
    });
}

/// As before; what the one sender's bit stands for is not taken for the other's.
pub fn two_senders_and_one_worker() {
    check(Effort::Changes(3), || {
        let pool = Pool::new(1, 1, 2);
        let threads = [pool.awake(0, false), pool.sender(0)];
        pool.send(1);
        pool.finish(threads);
    });
}

/// Who has raised the count and finds nobody idle lowers it and looks again.
pub fn two_wakers_and_one_who_is_idle() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(2, 2, 2);
        let threads = [pool.asleep(0), pool.awake(1, false), pool.sender(0)];
        pool.send(1);
        pool.finish(threads);
    });
}

/// Point 7, for a worker that stops being polled with a message in hand: somebody else is woken for what is ready.
pub fn a_sender_and_a_handler_that_suspends() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(2, 1, 1);
        let other = pool.asleep(0);
        pool.wake.enter(&pool.watchdog);
        let suspended = spawn({
            let pool = pool.clone();
            move || pool.wake.leave(&pool.watchdog)
        });
        pool.send(0);
        pool.finish([other, suspended]);
    });
}

/// Point 7, for a worker that does not count as awake: it looks as well before it sleeps.
pub fn a_sender_and_an_uncounted_worker_that_parks() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(1, 1, 1);
        let worker = pool.uncounted(0);
        pool.send(3);
        pool.finish([worker]);
    });
}

/// The sender finds enough awake, of which the only one suspends. Meanwhile one that does not count
/// takes what was ready before, and perhaps what is sent.
pub fn a_sender_and_the_only_counted_worker_that_suspends() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(2, 1, 2);
        pool.wake.mark(0);
        pool.wake.enter(&pool.watchdog);
        let suspended = spawn({
            let pool = pool.clone();
            move || pool.wake.leave(&pool.watchdog)
        });
        let threads = [pool.asleep(0), pool.uncounted(1), suspended];
        pool.send(1);
        pool.finish(threads);
    });
}

/// What only one worker can do: it finds the order when it parks, or is called.
pub fn an_order_for_a_worker_that_parks() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(1, 1, 0);
        let ordered = Arc::new(AtomicBool::new(false));
        pool.wake.enter(&pool.watchdog);
        let worker = spawn({
            let (pool, ordered) = (pool.clone(), ordered.clone());
            move || {
                while !ordered.load(Ordering::Relaxed) {
                    block_on(async {
                        let park_token = pool.wake.park(0, Some(own_waker().await));
                        pool.wake.leave(&pool.watchdog);
                        if ordered.load(Ordering::Relaxed) {
                            pool.wake.call(0, &pool.watchdog);
                        }
                        pool.woken(0, park_token).await
                    });
                }
                pool.wake.leave(&pool.watchdog);
            }
        });
        ordered.store(true, Ordering::Relaxed);
        pool.wake.call(0, &pool.watchdog);
        pool.finish([worker]);
    });
}

/// Point 7: a worker that is called has a handler that suspends at once. A sender never sees fewer
/// awake than there are.
pub fn a_sender_and_a_worker_that_is_called_and_suspends() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(2, 1, 1);
        let other = pool.asleep(0);
        pool.wake.enter(&pool.watchdog);
        let suspended = spawn({
            let pool = pool.clone();
            move || {
                block_on(async {
                    let park_token = pool.park(1, Some(own_waker().await));
                    pool.woken(1, park_token).await
                });
                pool.wake.leave(&pool.watchdog);
            }
        });
        let caller = spawn({
            let pool = pool.clone();
            move || {
                pool.wake.call(1, &pool.watchdog);
            }
        });
        pool.send(3);
        pool.finish([other, suspended, caller]);
    });
}

/// Point 8: a worker that was woken and is dropped before it looks passes the wake-up on.
pub fn a_worker_that_dies_with_a_wake_up_in_its_hands() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(2, 1, 1);
        let other = pool.asleep(0);
        let _ = pool.wake.park(1, None);
        let dying = spawn({
            let pool = pool.clone();
            move || pool.wake.forget(1, &pool.watchdog)
        });
        pool.send(0);
        pool.finish([other, dying]);
    });
}

/// Point 6: a searcher that absorbs a wake-up sees what it was for.
pub fn a_searcher_and_senders_on_its_thread() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(2, 2, 2);
        let threads = [pool.awake(0, true), pool.asleep(1), pool.sender(0)];
        pool.send(1);
        pool.finish(threads);
    });
}

/// Whoever parks while the pool ends is woken again.
pub fn the_end_of_a_pool_and_a_worker_that_parks() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(2, 2, 0);
        let threads = [pool.awake(0, true), pool.asleep(1)];
        pool.end();
        pool.finish(threads);
    });
}

impl Watched for Pool {
    fn set_clock(&self) {}

    fn tick(&self, before: u64) -> u64 {
        before
    }

    fn is_busy(&self) -> bool {
        self.wake.awake() > 0
    }

    fn is_unhurried(&self) -> bool {
        false
    }

    fn turn_away(&self) {
        self.watchdog.turn_away();
    }

    fn stay(&self) -> bool {
        self.watchdog.stay()
    }
}

/// A pool, as the watchdog sees it.
fn watched(pool: &Arc<Pool>) -> Arc<dyn Watched> {
    pool.clone()
}

/// A pool with a worker that is awake is watched, once. The call of the watchdog rests on
/// sequentially consistent accesses, which only one of the checkers knows.
pub fn a_watchdog_that_turns_away_and_a_pool_that_calls_it() {
    check(Effort::Large, || {
        watchdog::calls();
        let pool = Pool::new(1, 1, 0);
        pool.watchdog.connect(&watched(&pool));
        pool.watchdog.call();
        assert_eq!(watchdog::calls(), 1, "it is watched from now on");
        let worker = spawn({
            let pool = pool.clone();
            move || pool.wake.enter(&pool.watchdog)
        });
        let stays = pool.is_busy() || {
            pool.watchdog.turn_away();
            pool.is_busy() && pool.watchdog.stay()
        };
        worker.join().expect("it did not panic");
        assert_eq!(watchdog::calls() + u32::from(stays), 1, "one watch looks after the pool");
    });
}

/// The watchdog is told of a pool whose first worker is woken before the pool is known to it, or in
/// that moment.
pub fn a_watchdog_that_is_connected_as_a_worker_is_woken() {
    check(Effort::Large, || {
        watchdog::calls();
        let pool = Pool::new(1, 1, 0);
        let worker = spawn({
            let pool = pool.clone();
            move || pool.wake.enter(&pool.watchdog)
        });
        pool.watchdog.connect(&watched(&pool));
        worker.join().expect("it did not panic");
        assert_eq!(watchdog::calls(), 1, "one watch looks after the pool");
    });
}
