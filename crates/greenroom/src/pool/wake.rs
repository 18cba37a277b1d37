//! Sleeping and waking: who runs when there is work.
//!
//! A pool may have thousands of workers and two cores. What matters is how many workers are *awake*: polled now, or
//! woken and about to be. A worker whose handler is suspended is not awake.
//!
//! # The protocol
//! * Work is announced by a bit in the ready map ([`mark`](Wake::mark)), then [`one`](Wake::one) wakes an idle worker,
//!   unless as many are awake as there are cores, or none is idle.
//! * A worker that finds no work (steps: enter the idle list; `awake -= 1`; fence; look at the map again) and a worker
//!   whose handler suspends (`awake -= 1`; fence; look) both end in [`leave`](Wake::leave).
//!
//! The race is between a sender that marks and sees `awake` at its limit, and the last awake worker that leaves and
//! sees the map empty. Mark and look are separated from the access to `awake` by sequentially consistent fences on
//! both sides, so at least one of them sees the other: either the sender finds room and wakes, or the leaving worker
//! finds the bit and wakes somebody, possibly itself.
//!
//! The same holds for two wakers of which one has raised `awake` and then finds nobody idle: it lowers it and looks
//! again.
//!
//! # Lingering
//! A worker that has found nothing steps aside once before it lies down ([`linger`](Wake::linger),
//! [`look_again`](Wake::look_again)), and meanwhile takes the place of one wake-up: the waker takes one from `lingering`
//! instead of waking anybody. The lingerer, back again, takes one too, if there is one left, and only then looks at every
//! shard. Both are read-modify-writes of one variable: a waker that came first has marked its shard before the lingerer
//! looks; one that comes later finds less, and in the end none, and wakes somebody. One wake-up each, because each
//! lingerer is one worker; where it finds more than it can do, it wakes others as any worker does.
//!
//! The waker takes the worker off the idle list and raises `awake` on its behalf, so a wake-up belongs to exactly one
//! worker. One that dies first passes it on ([`forget`](Wake::forget)).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::bell::Bell;

pub(crate) struct Wake {
    /// A bit per shard: in a keyed pool, that somebody should look at it; without keys, that there are messages in it.
    ready: AtomicU64,
    /// Without keys, a bit per shard where a worker takes messages: others go elsewhere, where they can.
    attended: AtomicU64,
    /// Workers that are polled, or woken and about to be.
    awake: AtomicUsize,
    /// Awake workers that found nothing, have stepped aside once, and will look at every shard before they lie down.
    /// Each absorbs one wake-up.
    lingering: AtomicUsize,
    /// As many as can run at once.
    limit: usize,
    /// The last to fall asleep is woken first: its caches are warmest.
    idle: Mutex<Idle>,
    /// The length of `idle`, to be read without its lock.
    idle_count: AtomicUsize,
    /// One per worker.
    notify: Box<[Notify]>,
}

impl Wake {
    pub(crate) fn new(workers: usize, limit: usize) -> Self {
        Self {
            ready: AtomicU64::new(0),
            attended: AtomicU64::new(0),
            awake: AtomicUsize::new(0),
            lingering: AtomicUsize::new(0),
            limit: limit.max(1),
            idle: Mutex::new(Idle::new(workers)),
            idle_count: AtomicUsize::new(0),
            notify: (0..workers).map(|_| Notify::new()).collect(),
        }
    }

    /// Somebody should look at this shard.
    pub(crate) fn mark(&self, shard: usize) {
        let bit = 1 << shard;
        if self.ready.load(Ordering::Relaxed) & bit == 0 {
            self.ready.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Somebody should look at each of the shards with a bit here.
    pub(crate) fn mark_all(&self, shards: u64) {
        if self.ready.load(Ordering::Relaxed) & shards != shards {
            self.ready.fetch_or(shards, Ordering::AcqRel);
        }
    }

    /// Takes the first ready shard at or behind `cursor`, going round.
    pub(crate) fn claim(&self, cursor: u32) -> Option<usize> {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if ready == 0 {
                return None;
            }
            let shard = (ready.rotate_right(cursor).trailing_zeros() + cursor) % 64;
            let bit = 1 << shard;
            if self.ready.fetch_and(!bit, Ordering::AcqRel) & bit != 0 {
                return Some(shard as usize);
            }
        }
    }

    /// There is nothing in this shard any more. Without keys; under the lock of the shard's inbox.
    pub(crate) fn clear(&self, shard: usize) {
        let bit = 1 << shard;
        if self.ready.load(Ordering::Relaxed) & bit != 0 {
            self.ready.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Goes to the first ready shard at or behind `cursor`, going round: to one that nobody attends (true), or where all
    /// are attended, to any (false). Leaves its bit in place.
    pub(crate) fn attend(&self, cursor: u32) -> Option<(usize, bool)> {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            let free = ready & !self.attended.load(Ordering::Relaxed);
            let shards = if free == 0 { ready } else { free };
            if shards == 0 {
                return None;
            }
            let shard = (shards.rotate_right(cursor).trailing_zeros() + cursor) % 64;
            if free == 0 {
                return Some((shard as usize, false));
            }
            let bit = 1 << shard;
            if self.attended.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                return Some((shard as usize, true));
            }
        }
    }

    /// Leaves a shard that the caller attended, alone or not.
    pub(crate) fn depart(&self, shard: usize, alone: bool) {
        if alone {
            self.attended.fetch_and(!(1 << shard), Ordering::Relaxed);
        }
    }

    /// True when work is ready and another worker could be woken for it. A guess, for the price of three loads.
    pub(crate) fn wants_more(&self) -> bool {
        self.any_ready()
            && self.awake.load(Ordering::Relaxed) < self.limit
            && self.idle_count.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn any_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn awake(&self) -> usize {
        self.awake.load(Ordering::SeqCst)
    }

    pub(crate) fn idle(&self) -> usize {
        self.idle_count.load(Ordering::Relaxed)
    }

    /// Wakes an idle worker, unless enough are awake. True when one was woken.
    pub(crate) fn one(&self, bell: &Bell) -> bool {
        self.one_within(self.limit, bell)
    }

    /// Wakes an idle worker although as many are awake as there are cores: they have not made any progress.
    pub(crate) fn one_more(&self, bell: &Bell) -> bool {
        self.one_within(usize::MAX, bell)
    }

    fn one_within(&self, limit: usize, bell: &Bell) -> bool {
        loop {
            fence(Ordering::SeqCst);
            if self.take_lingerer() {
                return false;
            }
            let awake = self.awake.load(Ordering::Relaxed);
            if awake >= limit || self.idle_count.load(Ordering::Relaxed) == 0 {
                return false;
            }
            let raised = awake + 1;
            let swapped =
                self.awake.compare_exchange(awake, raised, Ordering::SeqCst, Ordering::Relaxed);
            if swapped.is_err() {
                continue;
            }
            if let Some(worker) = self.pop_idle() {
                self.notify[worker].notify_one();
                bell.ring();
                return true;
            }
            self.awake.fetch_sub(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            if !self.any_ready() {
                return false;
            }
        }
    }

    /// The caller has found nothing, steps aside once, and then looks again.
    pub(crate) fn linger(&self) {
        self.lingering.fetch_add(1, Ordering::AcqRel);
    }

    /// The caller is back, and is about to look at every shard; or it is dropped, and leaves.
    pub(crate) fn look_again(&self) {
        self.take_lingerer();
        fence(Ordering::SeqCst);
    }

    fn take_lingerer(&self) -> bool {
        let mut lingering = self.lingering.load(Ordering::Acquire);
        while lingering > 0 {
            let swapped = self.lingering.compare_exchange_weak(
                lingering,
                lingering - 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match swapped {
                Ok(_) => return true,
                Err(now) => lingering = now,
            }
        }
        false
    }

    fn pop_idle(&self) -> Option<usize> {
        let mut idle = self.idle.lock();
        let worker = idle.pop();
        self.idle_count.store(idle.stack.len(), Ordering::SeqCst);
        worker
    }

    /// Wakes every idle worker, to look at what has changed.
    pub(crate) fn all(&self) {
        while let Some(worker) = self.pop_idle() {
            self.awake.fetch_add(1, Ordering::SeqCst);
            self.notify[worker].notify_one();
        }
    }

    /// The caller is polled (again); from now on it is watched for how long.
    pub(crate) fn enter(&self, bell: &Bell) {
        self.awake.fetch_add(1, Ordering::SeqCst);
        bell.ring();
    }

    /// The caller is not polled any more.
    pub(crate) fn leave(&self, bell: &Bell) {
        self.awake.fetch_sub(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.any_ready() {
            self.one(bell);
        }
    }

    /// Enters the idle list; the caller then leaves, and waits for [`woken`](Self::woken).
    pub(crate) fn lie_down(&self, worker: usize) {
        let mut idle = self.idle.lock();
        idle.push(worker);
        self.idle_count.store(idle.stack.len(), Ordering::SeqCst);
    }

    /// Waits until a waker has taken the worker off the idle list.
    pub(crate) async fn woken(&self, worker: usize) {
        self.notify[worker].notified().await;
    }

    /// A worker goes that had lain down. Passes a wake-up that it was given on to another.
    pub(crate) fn forget(&self, worker: usize, bell: &Bell) {
        let mut idle = self.idle.lock();
        let lay = idle.remove(worker);
        self.idle_count.store(idle.stack.len(), Ordering::SeqCst);
        drop(idle);
        if !lay {
            self.leave(bell);
        }
    }
}

/// Idle workers, the last to fall asleep on top. Any of them leaves at the same price, because thousands leave at once
/// when a runtime goes.
struct Idle {
    stack: Vec<usize>,
    /// Where in the stack each worker is; [`UP`] when it is not.
    place: Box<[usize]>,
}

/// The place of a worker that is not idle.
const UP: usize = usize::MAX;

impl Idle {
    fn new(workers: usize) -> Self {
        Self { stack: Vec::new(), place: vec![UP; workers].into() }
    }

    fn push(&mut self, worker: usize) {
        debug_assert_eq!(self.place[worker], UP, "nobody lies down twice");
        self.place[worker] = self.stack.len();
        self.stack.push(worker);
    }

    fn pop(&mut self) -> Option<usize> {
        let worker = self.stack.pop()?;
        self.place[worker] = UP;
        Some(worker)
    }

    /// False when the worker was not there.
    fn remove(&mut self, worker: usize) -> bool {
        let place = std::mem::replace(&mut self.place[worker], UP);
        if place == UP {
            return false;
        }
        self.stack.swap_remove(place);
        if let Some(moved) = self.stack.get(place) {
            self.place[*moved] = place;
        }
        true
    }
}
