//! The bound, and waiting for room.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use crate::{
    checker::{Effort, JoinHandle, block_on, check, spawn},
    pool::{
        credit_map::CreditMap,
        permits::{Closed, Permits, Queues, Refused},
    },
    sync::{self, Mutex, fence},
};

/// Permits, with a worker's counter and a shard's credit.
struct Pool {
    permits: Permits,
    queues: Counters,
    /// Permits in use, as nobody but the model sees it.
    held: AtomicU64,
    capacity: u64,
    awake: sync::AtomicUsize,
}

struct Counters {
    /// Of each worker.
    started: [sync::AtomicU64; 2],
    credit_map: CreditMap,
    credit: Mutex<u64>,
}

impl Queues for Counters {
    fn started(&self) -> u64 {
        self.started.iter().map(|started| started.load(Ordering::Relaxed)).sum()
    }

    fn reclaim(&self) -> u64 {
        self.credit_map.reclaim(|_| std::mem::take(&mut *self.credit.lock()))
    }
}

impl Pool {
    fn new(capacity: u64) -> Arc<Self> {
        let queues = Counters {
            started: [sync::AtomicU64::new(0), sync::AtomicU64::new(0)],
            credit_map: CreditMap::new(),
            credit: Mutex::new(0),
        };
        let permits = Permits::new(capacity as usize);
        let awake = sync::AtomicUsize::new(0);
        Arc::new(Self { permits, queues, held: AtomicU64::new(0), capacity, awake })
    }

    /// A pool in which every permit is taken.
    fn full(capacity: u64) -> Arc<Self> {
        let pool = Self::new(capacity);
        pool.take_all(capacity);
        pool
    }

    fn take_all(&self, capacity: u64) {
        assert_eq!(self.permits.try_take(capacity, &self.queues), Ok(capacity));
        self.hold(capacity);
    }

    /// The steps of the core's `set_inbox`.
    fn resize(&self, capacity: usize) {
        self.permits.resize(capacity, &self.queues);
        self.serve_waiters();
    }

    fn hold(&self, permits: u64) {
        let held = self.held.fetch_add(permits, Ordering::Relaxed) + permits;
        assert!(held <= self.capacity, "more permits than the bound");
    }

    /// What a worker does that starts a message and then rests.
    fn start(&self) {
        self.start_at(0);
    }

    fn start_at(&self, worker: usize) {
        self.held.fetch_sub(1, Ordering::Relaxed);
        let counter = &self.queues.started[worker];
        let started = counter.load(Ordering::Relaxed);
        counter.store(started + 1, Ordering::Relaxed);
    }

    /// The steps of the core's `serve_waiters_in_blocks`, behind those of `Wake::leave`.
    fn suspend(&self) {
        self.awake.fetch_sub(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let is_last = || self.awake.load(Ordering::SeqCst) == 0;
        if self.permits.is_starved() && (self.permits.fills_block() || is_last()) {
            self.permits.grant(&self.queues);
        }
    }

    fn rest(&self) {
        fence(Ordering::SeqCst);
        self.serve_waiters();
    }

    fn serve_waiters(&self) {
        if self.permits.is_starved() {
            self.permits.grant(&self.queues);
        }
    }

    fn wait(&self) -> Result<(), Closed> {
        let taken = block_on(self.permits.take(&self.queues));
        if taken.is_ok() {
            self.hold(1);
        }
        taken
    }

    fn waiter(self: &Arc<Self>) -> JoinHandle<Result<(), Closed>> {
        let pool = self.clone();
        spawn(move || pool.wait())
    }

    fn worker(self: &Arc<Self>, messages: u64) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || {
            (0..messages).for_each(|_| pool.start());
            pool.rest();
        })
    }

    /// Every permit that nobody holds can be had.
    fn finish(&self) {
        let free = self.capacity - self.held.load(Ordering::Relaxed);
        let taken = self.permits.try_take_most(self.capacity + 1, &self.queues).unwrap_or(0);
        assert_eq!(taken, free, "no permit is lost, and none is there twice");
        assert!(!self.permits.is_starved(), "nobody waits");
    }
}

/// Point 7, for room: the waiter sees that a message has been started, or the worker sees that somebody waits.
pub fn one_who_waits_and_a_worker_that_starts_a_message() {
    check(Effort::Changes(5), || {
        let pool = Pool::full(1);
        let worker = pool.worker(1);
        assert_eq!(pool.wait(), Ok(()));
        worker.join().expect("it did not panic");
        pool.finish();
    });
}

/// Workers that suspend serve who waits in blocks; the last one awake does for less than a block.
pub fn one_who_waits_and_two_workers_that_suspend() {
    check(Effort::Changes(4), || {
        // A block is three permits.
        let pool = Pool::full(48);
        pool.awake.store(2, Ordering::SeqCst);
        let workers = [0, 1].map(|worker| {
            let pool = pool.clone();
            spawn(move || {
                pool.start_at(worker);
                pool.suspend();
            })
        });
        assert_eq!(pool.wait(), Ok(()));
        workers.into_iter().for_each(|worker| worker.join().expect("it did not panic"));
        pool.finish();
    });
}

/// Point 10: who goes leaves the line, and what was granted to it goes to the next.
pub fn two_who_wait_and_one_of_them_goes() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(1);
        let worker = pool.worker(1);
        let waiter = pool.waiter();
        let took = block_on(async {
            let mut wait = pin!(pool.permits.take(&pool.queues));
            let polled = std::future::poll_fn(|task| Poll::Ready(wait.as_mut().poll(task))).await;
            polled == Poll::Ready(Ok(()))
        });
        if took {
            pool.hold(1);
            pool.start();
            pool.rest();
        }
        assert_eq!(waiter.join().expect("it did not panic"), Ok(()));
        worker.join().expect("it did not panic");
        pool.finish();
    });
}

/// Two take what they find, while messages are started.
pub fn no_more_permits_than_the_bound() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(2);
        let worker = pool.worker(2);
        let other = spawn({
            let pool = pool.clone();
            move || pool.take_once()
        });
        pool.take_once();
        other.join().expect("it did not panic");
        worker.join().expect("it did not panic");
        pool.finish();
    });
}

impl Pool {
    fn take_once(&self) {
        match self.permits.try_take(1, &self.queues) {
            Ok(taken) => self.hold(taken),
            Err(refused) => assert_eq!(refused, Refused::Full),
        }
    }

    /// The steps of the core's `look_and_push`, with its one message held for ever.
    fn take_block(&self, most: u64) {
        let mut credit = self.queues.credit.lock();
        self.queues.credit_map.note(0);
        *credit = self.permits.take_known(most);
        if *credit > 0 {
            *credit -= 1;
            self.hold(1);
        } else {
            drop(credit);
            self.take_once();
        }
    }

    /// Sends one message, and takes a permit for another with its own.
    fn sender_of_one(self: &Arc<Self>) -> JoinHandle<()> {
        let pool = self.clone();
        spawn(move || pool.take_block(2))
    }

    /// The steps of the core's `give_credit`.
    fn give_credit(&self, permits: u64) {
        let mut credit = self.queues.credit.lock();
        self.queues.credit_map.note(0);
        if self.permits.is_starved() {
            drop(credit);
            return self.permits.give(permits, &self.queues);
        }
        *credit += permits;
    }
}

/// Point 9: credit that a sender leaves in a shard is found by who waits, or handed over.
pub fn credit_left_in_a_shard_and_one_who_waits() {
    check(Effort::Changes(5), || {
        let pool = Pool::full(1);
        let sender = spawn({
            let pool = pool.clone();
            move || {
                pool.held.fetch_sub(1, Ordering::Relaxed);
                pool.give_credit(1);
            }
        });
        assert_eq!(pool.wait(), Ok(()));
        sender.join().expect("it did not panic");
        pool.finish();
    });
}

/// The same for a sender that takes more than it needs: what it leaves is found by who waits.
pub fn permits_taken_in_a_block_and_one_who_waits() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(2);
        let sender = pool.sender_of_one();
        assert_eq!(pool.wait(), Ok(()));
        sender.join().expect("it did not panic");
        pool.finish();
    });
}

/// Who is refused was refused because every permit was held, also those that lay in a shard or were on their way to it.
pub fn permits_taken_in_a_block_and_one_who_does_not_wait() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(2);
        let sender = pool.sender_of_one();
        assert_eq!(pool.permits.try_take(1, &pool.queues), Ok(1), "two, and the sender holds one");
        pool.hold(1);
        sender.join().expect("it did not panic");
        pool.finish();
    });
}

/// Who waits gets what is added: it sees the new bound, or who adds it sees that somebody waits.
pub fn one_who_waits_and_a_bound_that_grows() {
    check(Effort::Changes(5), || {
        let pool = Pool::new(2);
        pool.resize(1);
        pool.take_all(1);
        let other = spawn({
            let pool = pool.clone();
            move || pool.resize(2)
        });
        assert_eq!(pool.wait(), Ok(()));
        other.join().expect("it did not panic");
        pool.finish();
    });
}

/// One who waits and one who takes what there is, while the bound shrinks and a message is started.
pub fn one_who_waits_and_a_bound_that_shrinks_and_grows() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(2);
        let other = spawn({
            let pool = pool.clone();
            move || {
                pool.resize(1);
                pool.resize(2);
            }
        });
        let worker = pool.worker(1);
        assert_eq!(pool.wait(), Ok(()));
        other.join().expect("it did not panic");
        worker.join().expect("it did not panic");
        pool.finish();
    });
}

/// Whoever waits while the pool closes is told so, or was served before.
pub fn one_who_waits_and_a_pool_that_closes() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(1);
        let (worker, waiter) = (pool.worker(1), pool.waiter());
        pool.permits.close();
        let _ = waiter.join().expect("it did not panic");
        worker.join().expect("it did not panic");
        assert_eq!(pool.permits.try_take(1, &pool.queues), Err(Refused::Closed));
    });
}

/// As before; after it is opened again, no permit is missing and none is there twice.
pub fn one_who_waits_and_a_pool_that_closes_and_opens_again() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(1);
        let (worker, waiter) = (pool.worker(1), pool.waiter());
        pool.permits.close();
        pool.permits.reopen();
        let _ = waiter.join().expect("it did not panic");
        worker.join().expect("it did not panic");
        pool.finish();
    });
}
