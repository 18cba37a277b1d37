//! Sleeping and waking: which workers run when there is work.
//!
//! A pool may have thousands of workers and only two cores. The number that counts is how many
//! workers are *awake*: polled now, or woken and about to be. A worker whose handler is suspended
//! is not awake.
//!
//! # The protocol
//! * Work is announced by a bit in the ready map ([`mark`](Wake::mark)). Then [`one`](Wake::one)
//!   wakes an idle worker, unless as many are awake as the runtime has threads, or none is idle.
//! * A worker that finds no work (steps: enter the idle list; `awake -= 1`; fence; check the map
//!   again) and a worker whose handler suspends (`awake -= 1`; fence; check) both end in
//!   [`leave`](Wake::leave).
//!
//! The race is between a sender that marks and sees `awake` at its limit, and the last awake
//! worker, which leaves and sees the map empty. On both sides a sequentially consistent fence
//! separates the mark or check from the access to `awake`, so at least one of them sees the other:
//! either the sender finds room and wakes a worker, or the leaving worker finds the bit and wakes
//! one, possibly itself.
//!
//! The same holds for two wakers if one has raised `awake` and then finds no idle worker: it lowers
//! `awake` and checks again.
//!
//! # If handlers usually wait
//! If handlers usually wait ([`waits`](Wake::waits)), a worker is polled once or twice for each
//! message. Counting it each time would have two threads write one variable twice for each message.
//! So a worker counts as awake from when it is woken until its handler suspends for the first time,
//! and not again until it parks. `awake` then covers workers that were woken and are about to look
//! for work.
//!
//! A worker that does not count has no duty to others while it moves from message to message: a
//! sender that finds `awake` below its limit and an idle worker wakes that worker. Its only duty is
//! to check after it has entered the idle list ([`pass_on`](Wake::pass_on)). The race is between a
//! sender that marks and finds no idle worker, and a worker that enters the list and finds nothing
//! ready. Fences separate the two steps on both sides, so one of them sees the other. As long as
//! work is ready, each woken worker wakes the next one as its handler suspends: so all of them wake
//! up one after the other, with only a few on their way at a time.
//!
//! # Searching
//! A worker that has found nothing more steps aside once before it parks
//! ([`begin_search`](Wake::begin_search), [`end_search`](Wake::end_search)). In that time it
//! absorbs one wake-up by a sender on its own thread: the sender clears `searching` instead of
//! waking a worker. When the searcher is back, it also clears `searching`, and only then looks at
//! every shard. Both are read-modify-writes of one variable: a sender that came first has marked
//! its shard before the searcher looks; one that comes later finds no searcher and wakes a worker.
//! This is only for senders on the same thread: the searcher runs as soon as they let it, and finds
//! their writes in the caches. A sender elsewhere wakes a worker that will run on the sender's
//! thread.
//!
//! # Affinity
//! Without keys, each worker keeps to one shard: the worker that takes messages there, or was woken
//! for it, has its bit set in `affinity`. If handlers are quick, such a shard is left to that
//! worker; if not, others join it. A worker that leaves it checks the ready map afterwards, so that
//! no shard is abandoned. If handlers usually wait ([`waits`](Wake::waits)), no worker keeps to a
//! shard: each message is the last that its worker takes there. Every bit needs a worker that
//! clears it when it leaves; otherwise the shard would be abandoned. So a worker may yield a shard
//! without clearing its bit only if the other worker also owns that bit. If the pace changes while
//! a worker keeps a shard to itself, the watchdog notices, and others join.
//!
//! # Handed a message
//! A caller may give an idle worker its message directly, past the queue, and have it woken
//! ([`hand`](Wake::hand)). No shard is marked. The worker has the message before it is off the
//! list, so if the worker cannot come, its wake-up and its message are found together.
//!
//! A waker takes a worker off the idle list, together with the waker of its task, and raises
//! `awake` on its behalf, so a wake-up belongs to exactly one worker. A worker that dies first
//! passes it on ([`forget`](Wake::forget)).

mod idle_list;
mod idle_slot;
mod picking;
mod ready;
#[cfg(test)]
mod tests;

pub use idle_slot::{ParkToken, WakeReason};

use idle_list::{Idle, NOT_IDLE};
use idle_slot::{ANY, IdleSlot};

use std::{
    future::poll_fn,
    task::{Poll, Waker},
    time::Duration,
};

use super::{
    lock::{Lock, locked},
    padded::Padded,
    per_slot::PerSlot,
    visits::Visits,
    watchdog_handle::WatchdogHandle,
};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

/// Which shards are ready, and which workers are idle.
pub struct Wake {
    /// One bit per shard. In a keyed pool it means that a worker should look at the shard; without
    /// keys, that there are messages in it.
    ready: Padded<AtomicU64>,
    /// Read for each message and rarely written.
    signs: Padded<Signs>,
    /// Without keys, a bit for each shard in which a worker takes messages: others go elsewhere if
    /// they can.
    affinity: Padded<AtomicU64>,
    /// Workers that are polled, or woken and about to be.
    awake: Padded<AtomicUsize>,
    /// The fields that workers write now and then, on their way.
    aside: Padded<Aside>,
    /// The most workers that can run at once.
    limit: usize,
    /// The last to fall asleep is woken first: its caches are warmest.
    idle: Lock<Idle>,
    /// The length of `idle`, readable without its lock.
    idle_count: AtomicUsize,
    /// One per worker.
    idle_slots: PerSlot<IdleSlot>,
}

/// The fields that workers read before each message.
struct Signs {
    /// A bit for each shard with urgent messages in its inbox or in ready lanes. Set under the lock
    /// of either, cleared under both; without keys there are no lanes.
    urgent: AtomicU64,
    /// Handlers return within [`QUICK`]: one worker per shard is enough, and a second one would
    /// only get in its way.
    quick: AtomicBool,
    /// Handlers usually wait: a worker leaves a shard with its first message, and none keeps to
    /// one.
    waits: AtomicBool,
}

/// One of the two is written if handlers are quick, the other if they usually wait.
struct Aside {
    /// The thread on which an awake worker that found nothing has stepped aside before it looks at
    /// every shard again, or [`NOBODY`]. It absorbs one wake-up by a sender on that thread.
    searching: AtomicUsize,
    /// If handlers usually wait: the shards that are looked at first.
    visits: Visits,
}

/// The waker of the task that awaits this.
#[inline]
pub fn own_waker() -> impl Future<Output = Waker> {
    poll_fn(|task| Poll::Ready(task.waker().clone()))
}

/// The token of no thread.
pub const NOBODY: usize = 0;

impl Wake {
    /// For this many workers, none of them idle yet; at most `limit` are to be awake at the same
    /// time.
    pub fn new(workers: usize, limit: usize) -> Self {
        Self {
            ready: Padded(AtomicU64::new(0)),
            signs: Padded(Signs {
                urgent: AtomicU64::new(0),
                quick: AtomicBool::new(false),
                waits: AtomicBool::new(false),
            }),
            affinity: Padded(AtomicU64::new(0)),
            awake: Padded(AtomicUsize::new(0)),
            aside: Padded(Aside { searching: AtomicUsize::new(NOBODY), visits: Visits::new() }),
            limit: limit.max(1),
            idle: Lock::new(Idle::new(workers)),
            idle_count: AtomicUsize::new(0),
            idle_slots: PerSlot::new(workers),
        }
    }

    /// The number of workers that are polled, or woken and about to be.
    #[inline]
    pub fn awake(&self) -> usize {
        // Pairs with each raise of `awake` before `WatchdogHandle::call`, as the watchdog reads
        // this after `turn_away`: it sees the worker, or the call sees that it is gone. Otherwise a
        // worker would be unwatched.
        self.awake.load(Ordering::SeqCst)
    }

    /// The number of workers in the idle list.
    pub fn idle(&self) -> usize {
        self.idle_count.load(Ordering::Relaxed)
    }

    /// Makes room for more workers.
    pub fn grow_to(&self, workers: usize) {
        self.idle_slots.grow_to(workers);
        locked(&self.idle).grow_to(workers);
    }

    /// The caller is being polled (again) and counts as awake; the watchdog watches how long it
    /// takes.
    #[inline]
    pub fn enter(&self, watchdog: &WatchdogHandle) {
        // Pairs with the loads in `WatchdogHandle::call` and `Wake::awake`, as in `pick`.
        self.awake.fetch_add(1, Ordering::SeqCst);
        watchdog.call();
    }

    /// The caller is no longer polled.
    #[inline]
    pub fn leave(&self, watchdog: &WatchdogHandle) {
        self.leave_to(watchdog);
    }

    /// Like `leave`. Returns the worker that was woken for ready work.
    #[inline]
    pub fn leave_to(&self, watchdog: &WatchdogHandle) -> Option<usize> {
        // Pairs with the load of `awake` in `pick`, through the fence in `pass_on_to`.
        self.awake.fetch_sub(1, Ordering::SeqCst);
        self.pass_on_to(watchdog)
    }

    /// Like `leave`, for a worker that did not count as awake: wakes another one for ready work.
    /// Call it after entering the idle list, or after marking the shards that the caller leaves.
    #[inline]
    pub fn pass_on(&self, watchdog: &WatchdogHandle) {
        self.pass_on_to(watchdog);
    }

    /// Like `pass_on`. Returns the worker that was woken.
    #[inline]
    pub fn pass_on_to(&self, watchdog: &WatchdogHandle) -> Option<usize> {
        // Pairs with three fences. With that in `pick`: the sender sees the lower `awake` or the
        // idle worker, or its mark is seen here. With that in `call`. And, for callers that read
        // `starved` and `closing` next, with those in `grant_to_all` and `next_progress`. Otherwise
        // a message, an order, a waiter or a stop would be forgotten.
        fence(Ordering::SeqCst);
        if !self.wants_attention() {
            return None;
        }
        let picked = self.pick(self.limit, None, watchdog)?;
        let worker = picked.worker;
        picked.wake();
        Some(worker)
    }

    /// Enters the idle list. The caller then leaves and waits to be [woken](Self::woken), in the
    /// same turn of its task if it gives that task's waker.
    #[inline]
    pub fn park(&self, worker: usize, waker: Option<Waker>) -> ParkToken {
        let park_token = if waker.is_some() { ParkToken::Told } else { ParkToken::Unknown };
        let mut idle = locked(&self.idle);
        idle.push(worker, waker);
        self.idle_slots.at(worker).is_listed.store(true, Ordering::Relaxed);
        self.idle_count.store(idle.stack.len(), Ordering::Release);
        park_token
    }

    /// Lets a wake-up of this worker wake this task from now on. Returns false if the worker is
    /// already off the list, so that another task or none was woken.
    #[cold]
    fn set_waker(&self, worker: usize, waker: &Waker) -> bool {
        // Cloning a waker is foreign code.
        let mut waker = Some(waker.clone());
        let mut idle = locked(&self.idle);
        let place = &mut idle.places[worker];
        let is_parked = place.at != NOT_IDLE;
        if is_parked {
            std::mem::swap(&mut place.waker, &mut waker);
        }
        drop(idle);
        drop(waker);
        is_parked
    }

    /// Waits until the worker is taken off the idle list. Returns the reason.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn woken(
        &self,
        worker: usize,
        mut park_token: ParkToken,
    ) -> impl Future<Output = WakeReason> {
        let idle_slot = self.idle_slots.at(worker);
        poll_fn(move |task| {
            if !idle_slot.is_listed.load(Ordering::Acquire) {
                return Poll::Ready(idle_slot.take_wake_reason());
            }
            let is_told = matches!(park_token, ParkToken::Told);
            park_token = ParkToken::Unknown;
            match is_told || self.set_waker(worker, task.waker()) {
                true => Poll::Pending,
                false => Poll::Ready(idle_slot.take_wake_reason()),
            }
        })
    }

    /// A worker that had parked goes away. Passes on a wake-up that it was given; the caller then
    /// checks for a message that it was handed.
    pub fn forget(&self, worker: usize, watchdog: &WatchdogHandle) {
        let mut idle = locked(&self.idle);
        if let Some(picked) = idle.remove(worker) {
            self.unpark(&idle, worker, ANY);
            drop(idle);
            drop(picked);
            // Pairs with the fences in `grant_to_all` and `next_progress`: as in `leave`, the
            // caller next checks for waiters of the messages that it has started.
            return fence(Ordering::SeqCst);
        }
        drop(idle);
        if let WakeReason::Shard(shard) = self.idle_slots.at(worker).take_wake_reason() {
            self.release_affinity(shard);
        }
        self.leave(watchdog);
    }
}

/// A handler this quick is not worth another thread: waking one costs more, and so does sharing the
/// queue with it.
pub const QUICK: Duration = Duration::from_micros(2);
