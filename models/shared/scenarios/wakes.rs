//! Sleeping and waking, without queues: a bit in the ready map is the work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Waker,
};

use crate::{
    checker::{Effort, JoinHandle, block_on, check, spawn, yield_now},
    pool::{
        bell::Bell,
        wake::{Errand, Rest, Wake, own_waker},
        watch::{self, Watched},
    },
    sync::AtomicBool,
};

/// Workers that do nothing but claim bits, and count them.
pub(super) struct Pool {
    pub(super) wake: Wake,
    pub(super) bell: Bell,
    /// Bits claimed, and those after which all is done. Not seen by the checker.
    claimed: AtomicU32,
    expected: u32,
    ended: AtomicBool,
}

impl Pool {
    pub(super) fn new(workers: usize, awake: usize, expected: u32) -> Arc<Self> {
        Arc::new(Self {
            wake: Wake::new(workers, awake),
            bell: Bell::silent(),
            claimed: AtomicU32::new(0),
            expected,
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn send(&self, shard: usize) {
        self.wake.mark(shard);
        self.wake.one(&self.bell);
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
            self.wake.one(&self.bell);
        }
        true
    }

    fn claim_all(&self) {
        while self.claim_one() {}
    }

    /// The steps of the product's `idle`, before it waits.
    /// Says what it was woken for.
    pub(super) async fn woken(&self, worker: usize, mut rest: Rest) -> Errand {
        let errand = self.wake.woken_or_called(worker, &mut rest, || false).await;
        errand.expect("there is nobody to call it")
    }

    pub(super) fn lie_down(&self, worker: usize, waker: Option<Waker>) -> Rest {
        let rest = self.wake.lie_down(worker, waker);
        self.wake.leave(&self.bell);
        if self.is_over() {
            self.wake.all();
        }
        rest
    }

    fn idle(&self, worker: usize) {
        block_on(async {
            let rest = self.lie_down(worker, Some(own_waker().await));
            self.woken(worker, rest).await
        });
    }

    /// The steps of the product's `linger`.
    fn linger(&self) {
        let lingers = self.wake.linger();
        yield_now();
        if lingers {
            self.wake.look_again();
        }
    }

    /// A worker that is awake already.
    fn work(&self, worker: usize, lingers: bool) {
        while !self.is_over() {
            self.claim_all();
            if lingers {
                self.linger();
                self.claim_all();
            }
            if !self.is_over() {
                self.idle(worker);
            }
        }
        self.wake.leave(&self.bell);
    }

    /// A worker that is awake before anything else happens.
    fn awake(self: &Arc<Self>, worker: usize, lingers: bool) -> JoinHandle<()> {
        self.wake.enter(&self.bell);
        let pool = self.clone();
        spawn(move || pool.work(worker, lingers))
    }

    /// A worker that sleeps before anything else happens.
    pub(super) fn asleep(self: &Arc<Self>, worker: usize) -> JoinHandle<()> {
        let rest = self.wake.lie_down(worker, None);
        let pool = self.clone();
        spawn(move || {
            block_on(pool.woken(worker, rest));
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
                let rest = pool.wake.lie_down(worker, Some(own_waker().await));
                pool.wake.pass_on(&pool.bell);
                if pool.is_over() {
                    pool.wake.all();
                }
                pool.woken(worker, rest).await
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

/// Point 7: either the sender sees that there is room for one more, or the worker sees the bit.
pub fn a_sender_and_the_last_worker_that_lies_down() {
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
        pool.wake.enter(&pool.bell);
        let suspended = spawn({
            let pool = pool.clone();
            move || pool.wake.leave(&pool.bell)
        });
        pool.send(0);
        pool.finish([other, suspended]);
    });
}

/// Point 7, for a worker that does not count as awake: it looks as well before it sleeps.
pub fn a_sender_and_an_uncounted_worker_that_lies_down() {
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
        pool.wake.enter(&pool.bell);
        let suspended = spawn({
            let pool = pool.clone();
            move || pool.wake.leave(&pool.bell)
        });
        let threads = [pool.asleep(0), pool.uncounted(1), suspended];
        pool.send(1);
        pool.finish(threads);
    });
}

/// What only one worker can do: it finds the order when it lies down, or is called.
pub fn an_order_for_a_worker_that_lies_down() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(1, 1, 0);
        let ordered = Arc::new(AtomicBool::new(false));
        pool.wake.enter(&pool.bell);
        let worker = spawn({
            let (pool, ordered) = (pool.clone(), ordered.clone());
            move || {
                while !ordered.load(Ordering::Relaxed) {
                    block_on(async {
                        let rest = pool.wake.lie_down(0, Some(own_waker().await));
                        pool.wake.leave(&pool.bell);
                        if ordered.load(Ordering::Relaxed) {
                            pool.wake.call(0, &pool.bell);
                        }
                        pool.woken(0, rest).await
                    });
                }
                pool.wake.leave(&pool.bell);
            }
        });
        ordered.store(true, Ordering::Relaxed);
        pool.wake.call(0, &pool.bell);
        pool.finish([worker]);
    });
}

/// Point 7: a worker that is called has a handler that suspends at once. A sender never sees fewer awake than there are.
pub fn a_sender_and_a_worker_that_is_called_and_suspends() {
    check(Effort::Changes(2), || {
        let pool = Pool::new(2, 1, 1);
        let other = pool.asleep(0);
        pool.wake.enter(&pool.bell);
        let suspended = spawn({
            let pool = pool.clone();
            move || {
                block_on(async {
                    let rest = pool.lie_down(1, Some(own_waker().await));
                    pool.woken(1, rest).await
                });
                pool.wake.leave(&pool.bell);
            }
        });
        let caller = spawn({
            let pool = pool.clone();
            move || {
                pool.wake.call(1, &pool.bell);
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
        let _ = pool.wake.lie_down(1, None);
        let dying = spawn({
            let pool = pool.clone();
            move || pool.wake.forget(1, &pool.bell)
        });
        pool.send(0);
        pool.finish([other, dying]);
    });
}

/// Point 6: a lingerer that absorbs a wake-up sees what it was for.
pub fn a_lingerer_and_senders_on_its_thread() {
    check(Effort::Changes(1), || {
        let pool = Pool::new(2, 2, 2);
        let threads = [pool.awake(0, true), pool.asleep(1), pool.sender(0)];
        pool.send(1);
        pool.finish(threads);
    });
}

/// Whoever lies down while the pool ends gets up again.
pub fn the_end_of_a_pool_and_a_worker_that_lies_down() {
    check(Effort::Changes(4), || {
        let pool = Pool::new(2, 2, 0);
        let threads = [pool.awake(0, true), pool.asleep(1)];
        pool.end();
        pool.finish(threads);
    });
}

impl Watched for Pool {
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
        self.bell.turn_away();
    }

    fn stay(&self) -> bool {
        self.bell.stay()
    }
}

/// A pool, as the watch sees it.
fn watched(pool: &Arc<Pool>) -> Arc<dyn Watched> {
    pool.clone()
}

/// A pool with a worker that is awake is watched, once. The bell rests on sequentially consistent accesses, which only
/// one of the checkers knows.
pub fn a_watch_that_turns_away_and_a_bell_that_rings() {
    check(Effort::Large, || {
        watch::calls();
        let pool = Pool::new(1, 1, 0);
        pool.bell.connect(&watched(&pool));
        pool.bell.ring();
        assert_eq!(watch::calls(), 1, "it is watched from now on");
        let worker = spawn({
            let pool = pool.clone();
            move || pool.wake.enter(&pool.bell)
        });
        let stays = pool.is_busy() || {
            pool.bell.turn_away();
            pool.is_busy() && pool.bell.stay()
        };
        worker.join().expect("it did not panic");
        assert_eq!(watch::calls() + u32::from(stays), 1, "one watch looks after the pool");
    });
}

/// The watch is told of a pool whose first worker gets up before the pool is known to it, or in that moment.
pub fn a_bell_that_is_connected_as_a_worker_gets_up() {
    check(Effort::Large, || {
        watch::calls();
        let pool = Pool::new(1, 1, 0);
        let worker = spawn({
            let pool = pool.clone();
            move || pool.wake.enter(&pool.bell)
        });
        pool.bell.connect(&watched(&pool));
        worker.join().expect("it did not panic");
        assert_eq!(watch::calls(), 1, "one watch looks after the pool");
    });
}
