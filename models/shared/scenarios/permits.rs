//! The bound, and waiting for room.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use greenroom_queue::{
    credit_map::CreditMap,
    permits::{Closed, Permits, Queues, Refused},
    sync::{self, Mutex, fence},
    watchdog::{self, Watched},
    watchdog_handle::WatchdogHandle,
};

use crate::checker::{Effort, JoinHandle, block_on, check, spawn};

/// Permits, with a worker's counter and a shard's credit.
struct Pool {
    permits: Permits,
    queues: Counters,
    /// Permits in use, as nobody but the model sees it.
    held: AtomicU64,
    capacity: u64,
    awake: sync::AtomicUsize,
    /// Messages taken from the only shard.
    taken: Mutex<u64>,
    watchdog: WatchdogHandle,
    is_watched: bool,
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
    fn new(capacity: u64) -> Self {
        let queues = Counters {
            started: [sync::AtomicU64::new(0), sync::AtomicU64::new(0)],
            credit_map: CreditMap::new(),
            credit: Mutex::new(0),
        };
        Self {
            permits: Permits::new(capacity as usize),
            queues,
            held: AtomicU64::new(0),
            capacity,
            awake: sync::AtomicUsize::new(0),
            taken: Mutex::new(0),
            watchdog: WatchdogHandle::none(),
            is_watched: true,
        }
    }

    /// A pool in which every permit is taken.
    fn full(capacity: u64) -> Arc<Self> {
        let pool = Self::new(capacity);
        pool.take_all(capacity);
        Arc::new(pool)
    }

    /// A full pool that nobody watches.
    fn unwatched(capacity: u64) -> Arc<Self> {
        let pool = Self { is_watched: false, ..Self::new(capacity) };
        pool.take_all(capacity);
        Arc::new(pool)
    }

    fn take_all(&self, capacity: u64) {
        assert_eq!(self.permits.try_take(capacity, &self.queues), Ok(capacity));
        self.hold(capacity);
    }

    /// The steps of the core's `set_capacity`.
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

    /// What a worker does that takes a message from the only shard, and starts it.
    fn take_at(&self, worker: usize) {
        let mut taken = self.taken.lock();
        *taken += 1;
        self.permits.note_taken(0, *taken);
        drop(taken);
        self.start_at(worker);
    }

    /// The steps of a worker that suspends, and those of the core's `serve_waiters_in_blocks`.
    /// Where the pool is watched, the worker is one that does not count as awake.
    fn suspend(&self) {
        if !self.is_watched {
            self.awake.fetch_sub(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
        let is_starved = self.permits.is_starved();
        let has_block = is_starved && self.permits.take_block();
        let is_last = || !self.is_watched && self.awake.load(Ordering::SeqCst) == 0;
        if has_block || (is_starved && is_last()) {
            self.permits.grant(&self.queues);
        }
    }

    /// Workers that each start a message and suspend.
    fn workers_that_suspend(self: &Arc<Self>) -> [JoinHandle<()>; 2] {
        self.awake.store(2, Ordering::SeqCst);
        [0, 1].map(|worker| {
            let pool = self.clone();
            spawn(move || {
                pool.take_at(worker);
                pool.suspend();
            })
        })
    }

    /// The steps of the core's `await_permit`, where handlers usually wait.
    async fn wait_in_blocks(&self) -> Result<(), Closed> {
        let taken = self.permits.take(&self.queues, true, &|| self.watchdog.call()).await;
        if taken.is_ok() {
            self.hold(1);
        }
        taken
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
        let taken = block_on(self.permits.take(&self.queues, false, &|| {}));
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

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|task| match future.as_mut().poll(task) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
}

/// Of the bound of these pools, a block is two permits.
const IN_BLOCKS: u64 = 48;

/// Workers that suspend serve who waits where a block has come free; otherwise the watchdog does.
pub fn one_who_waits_and_two_workers_that_suspend() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(IN_BLOCKS);
        let workers = pool.workers_that_suspend();
        block_on(async {
            let mut wait = pin!(pool.wait_in_blocks());
            let waits = poll_once(wait.as_mut()).await.is_none();
            join(workers);
            if waits && poll_once(wait.as_mut()).await.is_none() {
                assert!(pool.is_busy(), "the watch looks");
                pool.serve_waiters();
                assert_eq!(poll_once(wait.as_mut()).await, Some(Ok(())));
            }
        });
        pool.finish();
    });
}

/// The watchdog is not needed where a block comes free while somebody waits.
pub fn one_who_waits_and_two_workers_that_free_a_block() {
    check(Effort::Changes(3), || {
        let pool = Pool::full(IN_BLOCKS);
        block_on(async {
            let mut wait = pin!(pool.wait_in_blocks());
            assert_eq!(poll_once(wait.as_mut()).await, None);
            join(pool.workers_that_suspend());
            assert_eq!(poll_once(wait.as_mut()).await, Some(Ok(())));
        });
        pool.finish();
    });
}

/// Where nobody watches, the last worker awake serves who waits for less than a block.
pub fn one_who_waits_unwatched_and_two_workers_that_suspend() {
    check(Effort::Changes(3), || {
        let pool = Pool::unwatched(IN_BLOCKS);
        let workers = pool.workers_that_suspend();
        assert_eq!(pool.wait(), Ok(()));
        join(workers);
        pool.finish();
    });
}

impl Watched for Pool {
    fn set_clock(&self) {}

    fn tick(&self, before: u64) -> u64 {
        self.serve_waiters();
        before
    }

    fn is_busy(&self) -> bool {
        self.permits.is_starved()
    }

    fn is_unhurried(&self) -> bool {
        true
    }

    fn turn_away(&self) {
        self.watchdog.turn_away();
    }

    fn stay(&self) -> bool {
        self.watchdog.stay()
    }
}

/// Who waits for less than a block has the watchdog look: that one sees it when it turns away, or
/// is called.
pub fn one_who_waits_in_blocks_and_a_watchdog_that_turns_away() {
    check(Effort::Changes(3), || {
        watchdog::calls();
        let pool = Pool::full(IN_BLOCKS);
        let watched: Arc<dyn Watched> = pool.clone();
        pool.watchdog.connect(&watched);
        pool.watchdog.call();
        assert_eq!(watchdog::calls(), 1, "it is watched from now on");
        let worker = spawn({
            let pool = pool.clone();
            move || {
                pool.take_at(0);
                pool.suspend();
            }
        });
        let turning = spawn({
            let pool = pool.clone();
            move || {
                pool.watchdog.turn_away();
                if pool.is_busy() && pool.watchdog.stay() {
                    // It has been called by itself.
                    watchdog::over(Weak::<Pool>::new());
                }
            }
        });
        block_on(async {
            let mut wait = pin!(pool.wait_in_blocks());
            let waits = poll_once(wait.as_mut()).await.is_none();
            join([worker, turning]);
            let looks = watchdog::calls();
            if waits && poll_once(wait.as_mut()).await.is_none() {
                assert_eq!(looks, 1, "one watch looks after the pool");
                pool.tick(0);
                assert_eq!(poll_once(wait.as_mut()).await, Some(Ok(())));
            }
        });
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
            let mut wait = pin!(pool.permits.take(&pool.queues, false, &|| {}));
            poll_once(wait.as_mut()).await == Some(Ok(()))
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
        let pool = Arc::new(Pool::new(2));
        let sender = pool.sender_of_one();
        assert_eq!(pool.wait(), Ok(()));
        sender.join().expect("it did not panic");
        pool.finish();
    });
}

/// Who is refused was refused because every permit was held, also those that lay in a shard or were on their way to it.
pub fn permits_taken_in_a_block_and_one_who_does_not_wait() {
    check(Effort::Changes(5), || {
        let pool = Arc::new(Pool::new(2));
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
        let pool = Arc::new(Pool::new(2));
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
    check(Effort::Changes(2), || {
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
