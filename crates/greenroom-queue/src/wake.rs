//! Sleeping and waking: which workers run when there is work.
//!
//! A pool may have thousands of workers and two cores. What matters is how many workers are
//! *awake*: polled now, or woken and about to be. A worker whose handler is suspended is not awake.
//!
//! # The protocol
//! * Work is announced by a bit in the ready map ([`mark`](Wake::mark)), then [`one`](Wake::one)
//!   wakes an idle worker, unless as many are awake as there are cores, or none is idle.
//! * A worker that finds no work (steps: enter the idle list; `awake -= 1`; fence; look at
//!   the map again) and a worker whose handler suspends (`awake -= 1`; fence; look) both end
//!   in [`leave`](Wake::leave).
//!
//! The race is between a sender that marks and sees `awake` at its limit, and the last awake
//! worker, which leaves and sees the map empty. On both sides a sequentially consistent fence
//! separates mark or look from the access to `awake`, so at least one of them sees the other:
//! either the sender finds room and wakes a worker, or the leaving worker finds the bit and wakes
//! one, possibly itself.
//!
//! The same holds for two wakers if one has raised `awake` and then finds no idle worker: it lowers
//! it and looks again.
//!
//! # Where handlers usually wait
//! There ([`waits`](Wake::waits)) a worker is polled once or twice for each message, and if it were
//! counted each time, two threads would write one variable twice for each message. So a worker
//! counts as awake from when it is woken until its handler suspends for the first time, and not
//! again until it parks. `awake` covers workers that were woken and are about to look.
//!
//! A worker that does not count has no duty to others while it goes from message to message: a
//! sender that finds `awake` below its limit and an idle worker wakes that one. Its duty is to look
//! after it has entered the idle list ([`pass_on`](Wake::pass_on)). The race is between a sender
//! that marks and finds no idle worker, and a worker that enters the list and finds nothing ready.
//! Fences stand between the two steps on both sides, so one of them sees the other. As long as
//! work is ready, each woken worker wakes the next one as its handler suspends: so all come up, one
//! after the other, with only a few on their way at a time.
//!
//! # Searching
//! A worker that has found nothing more steps aside once before it parks
//! ([`begin_search`](Wake::begin_search), [`end_search`](Wake::end_search)). In that time it
//! absorbs one wake-up by a sender on its own thread: the sender clears `searching` instead of
//! waking a worker. When the searcher is back, it clears `searching` too, and only then looks at
//! every shard. Both are read-modify-writes of one variable: a sender that came first has marked
//! its shard before the searcher looks; one that comes later finds no searcher, and wakes a worker.
//! This is for senders on the same thread only: the searcher runs as soon as they let it, and finds
//! their writes in the caches. A sender elsewhere wakes a worker that will run on the sender's
//! thread.
//!
//! # Affinity
//! Without keys, workers keep to a shard each: the worker that takes messages there, or was woken
//! for it, has its bit set in `affinity`. If handlers are quick, such a shard is left to that
//! worker; if they are not, others join it. A worker that leaves it looks at the ready map
//! afterwards, so that no shard is left alone. If handlers usually wait ([`waits`](Wake::waits)),
//! no worker keeps to a shard: each message is the last that its worker takes there. Every bit has
//! a worker that clears it when it leaves, or the shard would be left alone: a worker may yield a
//! shard without clearing its bit only if the other worker also owns that bit. If the pace changes
//! while a worker keeps a shard to itself, the watchdog finds out, and others join.
//!
//! # Called while parked
//! A caller may do the work of an idle worker ([`woken_or_called`](Wake::woken_or_called)). The
//! worker stays in the list and is not awake: for all others it is as idle as before. If another
//! takes it off the list in that time, it wakes the worker's task, which comes once the caller has
//! put the work back. A worker that cannot come then, because its handler suspends or because it
//! ends, passes the wake-up on, as one that dies does.
//!
//! # Handed a message
//! A caller may also give an idle worker its message past the queue, and have it woken
//! ([`hand`](Wake::hand)). No shard is marked. The message is in the worker's hands before
//! the worker is off the list, so if the worker cannot come, its wake-up and its message are
//! found together.
//!
//! A waker takes a worker off the idle list, with the waker of its task, and raises `awake` on
//! its behalf, so a wake-up belongs to exactly one worker. A worker that dies first passes it
//! on ([`forget`](Wake::forget)).

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
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence, this_thread};

/// Which shards are ready, and which workers lie idle.
pub struct Wake {
    /// A bit per shard: in a keyed pool, that a worker should look at it; without keys, that there
    /// are messages in it.
    ready: Padded<AtomicU64>,
    /// Read for each message and rarely written.
    signs: Padded<Signs>,
    /// Without keys, a bit per shard in which a worker takes messages: others go elsewhere
    /// if they can.
    affinity: Padded<AtomicU64>,
    /// Workers that are polled, or woken and about to be.
    awake: Padded<AtomicUsize>,
    /// What workers write now and then, as they go on.
    aside: Padded<Aside>,
    /// As many as can run at once.
    limit: usize,
    /// The last to fall asleep is woken first: its caches are warmest.
    idle: Lock<Idle>,
    /// The length of `idle`, to be read without its lock.
    idle_count: AtomicUsize,
    /// One per worker.
    idle_slots: PerSlot<IdleSlot>,
}

/// What workers look at before each message.
struct Signs {
    /// A bit per shard with urgent messages: in its inbox, or in lanes that are ready. Set under
    /// the lock of either, cleared under both; without keys there are no lanes.
    urgent: AtomicU64,
    /// Handlers return within [`QUICK`]: one worker per shard is enough, and another would only
    /// meet it there.
    quick: AtomicBool,
    /// Handlers usually wait for something: a worker leaves a shard with its first message, and
    /// none keeps to one.
    waits: AtomicBool,
}

/// One of the two is written if handlers are quick, the other if they usually wait.
struct Aside {
    /// The thread on which an awake worker that found nothing has stepped aside, before it looks
    /// at every shard again; [`NOBODY`] if there is none. It absorbs one wake-up by a sender on
    /// that thread.
    searching: AtomicUsize,
    /// If handlers usually wait: which shards are looked at first.
    visits: Visits,
}

/// The idle slot of a worker.
struct IdleSlot {
    /// Which shard it was woken for, with the affinity to it; or [`ANY`]. Written under the lock of
    /// the idle list.
    wake_reason: AtomicU32,
    /// The worker is in the idle list. Written under its lock.
    taken: AtomicBool,
}

impl Default for IdleSlot {
    fn default() -> Self {
        Self { wake_reason: AtomicU32::new(ANY), taken: AtomicBool::new(false) }
    }
}

impl IdleSlot {
    /// What the worker, which has been taken off the idle list, was woken for.
    #[inline]
    fn take_wake_reason(&self) -> WakeReason {
        // Its writer has taken the worker off the list, and no other does before it is there again.
        let of = match self.wake_reason.load(Ordering::Relaxed) {
            ANY => return WakeReason::Any,
            HANDED => WakeReason::Handed,
            shard => WakeReason::Shard(shard as usize),
        };
        self.wake_reason.store(ANY, Ordering::Relaxed);
        of
    }
}

/// Of a worker, from when it parks until it is unparked: whether the waker that takes it off the
/// idle list wakes its task.
pub enum ParkToken {
    /// Not yet.
    Unknown,
    /// Yes: it has just given its waker.
    Told,
    /// Yes, if it is the same task as before.
    Known,
}

/// A worker that was taken off the idle list, and is to be polled.
#[must_use]
pub struct Picked {
    /// Which one.
    pub worker: usize,
    /// None if it comes by itself: it has not given its waker yet.
    waker: Option<Waker>,
}

impl Picked {
    /// Wakes it, under no lock.
    #[inline]
    pub fn wake(self) {
        if let Some(waker) = self.waker {
            waker.wake();
        }
    }
}

/// The waker of the task that awaits this.
#[inline]
pub fn own_waker() -> impl Future<Output = Waker> {
    poll_fn(|task| Poll::Ready(task.waker().clone()))
}

/// However many are awake, searching or not.
const NO_LIMIT: usize = usize::MAX;

/// Woken for no shard in particular, and to join others in theirs.
const ANY: u32 = u32::MAX;

/// Woken for a message that it was handed.
const HANDED: u32 = u32::MAX - 1;

/// So many of the last to fall asleep may be handed a message.
const WORKERS_ASKED: usize = 4;

/// What a worker was woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// Work, wherever it is.
    Any,
    /// It has the affinity to this one.
    Shard(usize),
    /// A message that a caller has handed it.
    Handed,
}

/// The token of no thread.
pub const NOBODY: usize = 0;

impl Wake {
    /// For so many workers, none of which is idle yet; at most `limit` are to be awake at the same
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

    /// A worker should look at this shard.
    #[inline]
    pub fn mark(&self, shard: usize) {
        let bit = 1 << shard;
        // A bit that was cleared is not seen as set. The worker that clears it holds the lock
        // of the shard's inbox (`clear`), or takes it afterwards. If it had the lock before the
        // caller, the caller sees the bit cleared; otherwise it finds what the caller queued.
        if self.ready.load(Ordering::Relaxed) & bit == 0 {
            self.ready.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Workers should look at each of the shards with a bit here.
    #[inline]
    pub fn mark_all(&self, shards: u64) {
        if self.ready.load(Ordering::Relaxed) & shards != shards {
            self.ready.fetch_or(shards, Ordering::AcqRel);
        }
    }

    /// Takes the first ready shard at or behind `cursor`, going round.
    #[inline]
    pub fn claim(&self, cursor: u32) -> Option<usize> {
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

    /// As `claim`, if handlers usually wait: the shard that this thread visits, whose bit stays
    /// in its place.
    #[inline]
    pub fn near(&self) -> Option<usize> {
        let ready = self.ready.load(Ordering::Acquire);
        (ready != 0).then(|| self.aside.visits.next(ready))
    }

    /// What threads visit is forgotten.
    pub fn end_visits(&self) {
        self.aside.visits.end();
    }

    /// There are urgent messages in this shard. Under the lock of their queue.
    #[inline]
    pub fn set_urgent(&self, shard: usize) {
        // Pairs with the loads in `has_urgent` and `urgent_shards`. A worker that misses it takes a
        // normal message first.
        self.signs.urgent.fetch_or(1 << shard, Ordering::SeqCst);
    }

    /// There are none any more. Under the lock of the shard's inbox and, with keys, that
    /// of its outbox.
    #[inline]
    pub fn clear_urgent(&self, shard: usize) {
        // Pairs with the `fetch_or` in `set_urgent`, by the locks: no bit is cleared over an
        // urgent message.
        self.signs.urgent.fetch_and(!(1 << shard), Ordering::SeqCst);
    }

    /// True when urgent messages wait somewhere.
    #[inline]
    pub fn has_urgent(&self) -> bool {
        self.signs.urgent.load(Ordering::Relaxed) != 0
    }

    /// True when urgent messages wait in this shard.
    #[inline]
    pub fn has_urgent_at(&self, shard: usize) -> bool {
        self.urgent_shards() & (1 << shard) != 0
    }

    /// The shards with urgent messages.
    #[inline]
    pub fn urgent_shards(&self) -> u64 {
        self.signs.urgent.load(Ordering::Acquire)
    }

    /// Takes this shard off the ready ones. False when it was not among them.
    #[inline]
    pub fn claim_this(&self, shard: usize) -> bool {
        let bit = 1 << shard;
        self.ready.load(Ordering::Acquire) & bit != 0
            && self.ready.fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// There is nothing in this shard any more. Without keys; under the lock of the shard's inbox.
    #[inline]
    pub fn clear(&self, shard: usize) {
        let bit = 1 << shard;
        if self.ready.load(Ordering::Relaxed) & bit != 0 {
            self.ready.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Goes to the first ready shard at or behind `cursor`, going round: to one to which no worker
    /// keeps (true), or, if there is none and it may `join`, to any (false). Leaves its bit in
    /// place.
    #[inline]
    pub fn acquire_affinity(&self, cursor: u32, join: bool) -> Option<(usize, bool)> {
        loop {
            let ready = self.ready.load(Ordering::Acquire);
            if self.waits() && ready != 0 {
                return Some((self.aside.visits.next(ready), false));
            }
            let free = ready & !self.affinity.load(Ordering::Acquire);
            let shards = match free {
                0 if join || !self.is_quick() => ready,
                free => free,
            };
            if shards == 0 {
                return None;
            }
            let shard = (shards.rotate_right(cursor).trailing_zeros() + cursor) % 64;
            if free == 0 {
                return Some((shard as usize, false));
            }
            let bit = 1 << shard;
            if self.affinity.fetch_or(bit, Ordering::AcqRel) & bit == 0 {
                return Some((shard as usize, true));
            }
        }
    }

    /// Leaves a shard to which the caller alone had affinity.
    #[inline]
    pub fn release_affinity(&self, shard: usize) {
        self.affinity.fetch_and(!(1 << shard), Ordering::AcqRel);
    }

    /// True when work is ready that no worker is about to do, and a worker could be woken for it. A
    /// guess, for the price of a few loads.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.wants_attention()
            && self.awake.load(Ordering::Relaxed) < self.limit
            && self.idle_count.load(Ordering::Relaxed) > 0
    }

    /// True when no worker keeps to a ready shard, or another could join there.
    #[inline]
    fn wants_attention(&self) -> bool {
        let ready = self.ready.load(Ordering::Relaxed);
        ready != 0 && (ready & !self.affinity.load(Ordering::Relaxed) != 0 || !self.is_quick())
    }

    /// True if handlers return within [`QUICK`].
    #[inline]
    pub fn is_quick(&self) -> bool {
        self.signs.quick.load(Ordering::Relaxed)
    }

    /// Tells how long a handler took, on average over a few.
    #[inline]
    pub fn note_pace(&self, each: Duration) {
        self.set_quick(each < QUICK);
    }

    /// From now on handlers are taken to be quick, or not.
    pub fn set_quick(&self, quick: bool) {
        if quick != self.is_quick() {
            self.signs.quick.store(quick, Ordering::Relaxed);
        }
    }

    /// True if handlers usually wait for something.
    #[inline]
    pub fn waits(&self) -> bool {
        self.signs.waits.load(Ordering::Relaxed)
    }

    /// Handlers have come to wait for something, or to do so rarely.
    #[cold]
    pub fn set_waits(&self, waits: bool) {
        self.signs.waits.store(waits, Ordering::Relaxed);
        if waits {
            self.set_quick(false);
        }
    }

    /// True when a worker should look at this shard.
    #[inline]
    pub fn is_ready_at(&self, shard: usize) -> bool {
        self.ready.load(Ordering::Acquire) & (1 << shard) != 0
    }

    /// True when a worker should look at a shard to which none keeps.
    #[inline]
    pub fn is_any_free(&self) -> bool {
        self.ready.load(Ordering::Relaxed) & !self.affinity.load(Ordering::Relaxed) != 0
    }

    /// True when the worker that keeps to this shard should look at it, or at one to which none
    /// does.
    #[inline]
    pub fn is_ready_with_affinity(&self, shard: usize) -> bool {
        let others = self.affinity.load(Ordering::Relaxed) & !(1 << shard);
        self.ready.load(Ordering::Relaxed) & !others != 0
    }

    /// True when a worker should look at another shard than this one.
    #[inline]
    pub fn is_ready_beside(&self, shard: usize) -> bool {
        self.ready.load(Ordering::Relaxed) & !(1 << shard) != 0
    }

    /// True if a worker should look at a shard.
    #[inline]
    pub fn any_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed) != 0
    }

    /// How many shards workers should look at.
    #[inline]
    pub fn ready_shards(&self) -> u32 {
        self.ready.load(Ordering::Relaxed).count_ones()
    }

    /// Workers that are polled, or woken and about to be.
    #[inline]
    pub fn awake(&self) -> usize {
        // Pairs with each raise of `awake` before `WatchdogHandle::call`, as the watchdog looks
        // here after `turn_away`: it sees the worker, or the call sees that it is gone. Otherwise a
        // worker goes unwatched.
        self.awake.load(Ordering::SeqCst)
    }

    /// Workers that are in the idle list.
    pub fn idle(&self) -> usize {
        self.idle_count.load(Ordering::Relaxed)
    }

    /// Wakes an idle worker for this shard, unless enough are awake. True when one was woken.
    pub fn one_for(&self, shard: usize, watchdog: &WatchdogHandle) -> bool {
        self.one_within(self.limit, Some(shard), watchdog)
    }

    /// Wakes an idle worker, unless enough are awake. True when one was woken.
    pub fn one(&self, watchdog: &WatchdogHandle) -> bool {
        self.one_within(self.limit, None, watchdog)
    }

    /// Wakes an idle worker, on the caller's thread, for this shard, which another drains remotely.
    pub fn wake_near_sender(&self, shard: usize, watchdog: &WatchdogHandle) {
        self.one_within(NO_LIMIT, Some(shard), watchdog);
    }

    /// Wakes an idle worker although as many are awake as there are cores: they have made
    /// no progress.
    pub fn one_more(&self, watchdog: &WatchdogHandle) -> bool {
        self.one_within(NO_LIMIT, None, watchdog)
    }

    fn one_within(&self, limit: usize, shard: Option<usize>, watchdog: &WatchdogHandle) -> bool {
        let picked = self.pick(limit, shard, watchdog);
        let woken = picked.is_some();
        picked.into_iter().for_each(Picked::wake);
        woken
    }

    /// As `one_for`, or `one` if there are keys, for a caller that has the worker polled: by
    /// itself, or by [`wake`](Picked::wake). For a shard only if workers keep to shards: others
    /// would not clear its bit in `affinity`, and later messages there would be left alone.
    pub fn pick_for(&self, shard: Option<usize>, watchdog: &WatchdogHandle) -> Option<Picked> {
        self.pick(self.limit, shard, watchdog)
    }

    fn pick(
        &self,
        limit: usize,
        shard: Option<usize>,
        watchdog: &WatchdogHandle,
    ) -> Option<Picked> {
        loop {
            // Pairs with the fences in `pass_on` and `end_search`, and below. The caller has marked
            // its shard: either it sees the lower `awake`, the idle worker, or that none searches,
            // or the worker sees the mark. Otherwise the shard is left alone.
            fence(Ordering::SeqCst);
            if limit < NO_LIMIT && self.claim_searcher() {
                return None;
            }
            let awake = self.awake.load(Ordering::Relaxed);
            if awake >= limit || self.idle_count.load(Ordering::Relaxed) == 0 {
                return None;
            }
            let raised = awake + 1;
            // Pairs with the load in `WatchdogHandle::call` and, after `turn_away`, the one in
            // `Wake::awake`: the raise precedes the call, so the watchdog stays or is called back.
            let swapped =
                self.awake.compare_exchange(awake, raised, Ordering::SeqCst, Ordering::Relaxed);
            if swapped.is_err() {
                continue;
            }
            if let Some(picked) = self.pop_idle(shard) {
                watchdog.call();
                return Some(picked);
            }
            // Pairs with the load of `awake` in `pick`, through the fence below.
            self.awake.fetch_sub(1, Ordering::SeqCst);
            // Pairs with the fence above in another waker: it sees the lower count, or its mark is
            // seen here. Otherwise it gives up because of a worker that is not there.
            fence(Ordering::SeqCst);
            if !self.wants_attention() {
                return None;
            }
        }
    }

    /// True if a message may be handed to an idle worker: one may be woken, and no worker on this
    /// very thread looks at every shard in a moment. A guess.
    #[inline]
    pub fn may_hand(&self) -> bool {
        let searching = self.aside.searching.load(Ordering::Relaxed);
        self.awake.load(Ordering::Relaxed) < self.limit
            && self.idle_count.load(Ordering::Relaxed) > 0
            && (searching == NOBODY || searching != this_thread())
    }

    /// Wakes an idle worker for a message that `put` hands it. `put` says whether it did, under the
    /// lock of the list: it does not if an earlier caller has not collected its reply. True when
    /// one was woken.
    #[inline]
    pub fn hand(&self, watchdog: &WatchdogHandle, mut put: impl FnMut(usize) -> bool) -> bool {
        let awake = self.awake.load(Ordering::Relaxed);
        // Pairs with the loads in `WatchdogHandle::call` and `Wake::awake`, as in `pick`.
        let (raised, order) = (awake + 1, Ordering::SeqCst);
        if awake >= self.limit
            || self.awake.compare_exchange(awake, raised, order, Ordering::Relaxed).is_err()
        {
            return false;
        }
        let mut idle = locked(&self.idle);
        let handed = idle.last(WORKERS_ASKED).find(|worker| put(*worker));
        if let Some(picked) = handed.and_then(|worker| idle.remove(worker)) {
            self.unpark(&idle, picked.worker, HANDED);
            drop(idle);
            watchdog.call();
            picked.wake();
            return true;
        }
        drop(idle);
        // As in `pick`: others have seen one more awake than there is.
        self.leave(watchdog);
        false
    }

    /// Makes room for more workers.
    pub fn grow_to(&self, workers: usize) {
        self.idle_slots.grow_to(workers);
        locked(&self.idle).grow_to(workers);
    }

    /// Wakes this worker if it is idle: something waits that only it can do. True when it was
    /// woken. The caller has published what waits; a worker that parks looks for it afterwards.
    ///
    /// On a thread of the runtime the worker then lies where no other thread takes it, until the
    /// task of the caller awaits something. No other worker can do what waits. If the caller may
    /// compute on, see "A worker that wakes another" in wake/README.md.
    pub fn call(&self, worker: usize, watchdog: &WatchdogHandle) -> bool {
        // Pairs with the fence in `pass_on` of a worker that parks: this load sees it in the idle
        // list, or it sees what the caller has published. Otherwise it sleeps over an order or its
        // mail.
        fence(Ordering::SeqCst);
        if !self.idle_slots.at(worker).taken.load(Ordering::Relaxed) {
            return false;
        }
        let mut idle = locked(&self.idle);
        let Some(picked) = idle.remove(worker) else { return false };
        self.unpark_counted(&idle, worker);
        drop(idle);
        picked.wake();
        watchdog.call();
        true
    }

    /// A worker has been taken off the idle list. `awake` has been raised on its behalf before,
    /// unless it goes: once it is told here, it may lower it. If it is sent to a shard that has a
    /// worker already, the first to leave clears the bit of both; that costs a meeting there, and
    /// no message. Under the lock of the list, so that a worker that dies now finds its wake
    /// reason.
    #[inline]
    fn unpark(&self, idle: &Idle, worker: usize, wake_reason: u32) {
        let idle_slot = self.idle_slots.at(worker);
        idle_slot.wake_reason.store(wake_reason, Ordering::Relaxed);
        idle_slot.taken.store(false, Ordering::Release);
        self.idle_count.store(idle.stack.len(), Ordering::Release);
    }

    /// The caller has found nothing, steps aside once, and then looks again. False when another
    /// worker does so already.
    pub fn begin_search(&self) -> bool {
        let thread = this_thread();
        self.aside
            .searching
            .compare_exchange(NOBODY, thread, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The caller is back, and is about to look at every shard; or it is dropped, and leaves. It
    /// may be on another thread by now, and may clear the promise of a later searcher, which costs
    /// that one a wake-up and loses no message.
    #[inline]
    pub fn end_search(&self) {
        self.aside.searching.swap(NOBODY, Ordering::AcqRel);
        // Pairs with the fence in `pick`: the sender sees that no worker searches, or the searcher
        // sees its mark in the look that follows. Otherwise each relies on the other.
        fence(Ordering::SeqCst);
    }

    /// True when a worker searches on this very thread: it looks at the shards that the caller has
    /// marked as soon as the caller lets it run, and shares its caches.
    fn claim_searcher(&self) -> bool {
        let searching = self.aside.searching.load(Ordering::Acquire);
        searching != NOBODY
            && searching == this_thread()
            && self
                .aside
                .searching
                .compare_exchange(searching, NOBODY, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    fn pop_idle(&self, shard: Option<usize>) -> Option<Picked> {
        let mut idle = locked(&self.idle);
        let picked = idle.pop()?;
        let wake_reason = shard.filter(|_| !self.waits()).map_or(ANY, |shard| {
            self.affinity.fetch_or(1 << shard, Ordering::AcqRel);
            shard as u32
        });
        self.unpark(&idle, picked.worker, wake_reason);
        Some(picked)
    }

    /// Wakes every idle worker, to look at the change.
    pub fn all(&self) {
        while let Some(picked) = self.pop_any() {
            picked.wake();
        }
    }

    /// Takes the last worker off the idle list, however many are awake.
    fn pop_any(&self) -> Option<Picked> {
        let mut idle = locked(&self.idle);
        let picked = idle.pop()?;
        self.unpark_counted(&idle, picked.worker);
        Some(picked)
    }

    /// A worker has been taken off the idle list, and counts as awake. In this order: otherwise a
    /// worker whose handler suspends at once lowers `awake` below zero, and a sender of that moment
    /// takes it for more than the limit and wakes nobody.
    fn unpark_counted(&self, idle: &Idle, worker: usize) {
        // Pairs with the loads in `WatchdogHandle::call` and `Wake::awake`, as in `pick`. A pool
        // that ends need not be watched: `all` does not call it.
        self.awake.fetch_add(1, Ordering::SeqCst);
        self.unpark(idle, worker, ANY);
    }

    /// The caller is polled (again); from now on it is watched for how long.
    #[inline]
    pub fn enter(&self, watchdog: &WatchdogHandle) {
        // Pairs with the loads in `WatchdogHandle::call` and `Wake::awake`, as in `pick`.
        self.awake.fetch_add(1, Ordering::SeqCst);
        watchdog.call();
    }

    /// The caller is not polled any more.
    #[inline]
    pub fn leave(&self, watchdog: &WatchdogHandle) {
        self.leave_to(watchdog);
    }

    /// As `leave`. Returns the worker that was woken for what is ready.
    #[inline]
    pub fn leave_to(&self, watchdog: &WatchdogHandle) -> Option<usize> {
        // Pairs with the load of `awake` in `pick`, through the fence in `pass_on`.
        self.awake.fetch_sub(1, Ordering::SeqCst);
        self.pass_on_to(watchdog)
    }

    /// As `leave`, for a worker that did not count as awake: wakes another for ready work. Call it
    /// after entering the idle list, or after marking the shards that are left.
    #[inline]
    pub fn pass_on(&self, watchdog: &WatchdogHandle) {
        self.pass_on_to(watchdog);
    }

    /// As `pass_on`. Returns the worker that was woken.
    #[inline]
    pub fn pass_on_to(&self, watchdog: &WatchdogHandle) -> Option<usize> {
        // Pairs with three fences. With that in `pick`: the sender sees the lower `awake` or the
        // idle worker, or its mark is seen here. With that in `call`. And, for callers that look at
        // `starved` and `closing` next, with those in `grant_to_all` and `wait_until`. Otherwise a
        // message, an order, a waiter or a stop is forgotten.
        fence(Ordering::SeqCst);
        if !self.wants_attention() {
            return None;
        }
        let picked = self.pick(self.limit, None, watchdog)?;
        let worker = picked.worker;
        picked.wake();
        Some(worker)
    }

    /// Enters the idle list. The caller then leaves, and waits to be
    /// [woken](Self::woken_or_called), in the same turn of its task if it gives that task's waker.
    #[inline]
    pub fn park(&self, worker: usize, waker: Option<Waker>) -> ParkToken {
        let park_token = if waker.is_some() { ParkToken::Told } else { ParkToken::Unknown };
        let mut idle = locked(&self.idle);
        idle.push(worker, waker);
        self.idle_slots.at(worker).taken.store(true, Ordering::Relaxed);
        self.idle_count.store(idle.stack.len(), Ordering::Release);
        park_token
    }

    /// A wake-up of this worker wakes this task from now on. False if the worker is off the list
    /// already, and another task or none was woken.
    #[cold]
    fn set_waker(&self, worker: usize, waker: &Waker) -> bool {
        // Foreign code.
        let mut waker = Some(waker.clone());
        let mut idle = locked(&self.idle);
        let place = &mut idle.places[worker];
        let is_parked = place.at != UP;
        if is_parked {
            std::mem::swap(&mut place.waker, &mut waker);
        }
        drop(idle);
        drop(waker);
        is_parked
    }

    /// True while this worker is in the idle list. A guess.
    #[inline]
    pub fn is_parked(&self, worker: usize) -> bool {
        self.idle_slots.at(worker).taken.load(Ordering::Relaxed)
    }

    /// Waits until the worker is taken off the idle list, and says what for. Or until `is_called`,
    /// which is asked at each poll: None, and the worker is still in the list and is to come back
    /// with the same `park_token`. `is_driven` says whether a caller that does the work of a task
    /// polls here, with that task's own waker.
    #[inline(always)]
    pub fn woken_or_called(
        &self,
        worker: usize,
        park_token: &mut ParkToken,
        is_driven: impl Fn() -> bool,
        mut is_called: impl FnMut() -> bool,
    ) -> impl Future<Output = Option<WakeReason>> {
        let idle_slot = self.idle_slots.at(worker);
        poll_fn(move |task| {
            if !idle_slot.taken.load(Ordering::Acquire) {
                return Poll::Ready(Some(idle_slot.take_wake_reason()));
            }
            if is_called() {
                return Poll::Ready(None);
            }
            let is_known = match park_token {
                ParkToken::Told => true,
                ParkToken::Known => is_driven(),
                ParkToken::Unknown => false,
            };
            *park_token = ParkToken::Known;
            match is_known || self.set_waker(worker, task.waker()) {
                true => Poll::Pending,
                false => Poll::Ready(Some(idle_slot.take_wake_reason())),
            }
        })
    }

    /// A worker that had parked goes, or cannot come any more. Passes on a wake-up that it was
    /// given; the caller then looks for a message that it was handed.
    pub fn forget(&self, worker: usize, watchdog: &WatchdogHandle) {
        let mut idle = locked(&self.idle);
        if let Some(picked) = idle.remove(worker) {
            self.unpark(&idle, worker, ANY);
            drop(idle);
            drop(picked);
            // Pairs with the fences in `grant_to_all` and `wait_until`: as in `leave`, the caller
            // looks next for waiters of what it has started.
            return fence(Ordering::SeqCst);
        }
        drop(idle);
        if let WakeReason::Shard(shard) = self.idle_slots.at(worker).take_wake_reason() {
            self.release_affinity(shard);
        }
        self.leave(watchdog);
    }
}

/// A handler this quick is not worth another thread: waking one, and meeting it at the same
/// queue, costs more.
pub const QUICK: Duration = Duration::from_micros(2);

/// Idle workers, the last to fall asleep on top. Any of them leaves at the same price, because
/// thousands leave at once when a runtime ends.
struct Idle {
    stack: Vec<usize>,
    /// One per worker.
    places: Vec<IdleEntry>,
}

struct IdleEntry {
    /// The worker's place in the stack; [`UP`] when it is not there.
    at: usize,
    /// Of its task, while it is in the stack and has given it.
    waker: Option<Waker>,
}

/// The place of a worker that is not idle.
const UP: usize = usize::MAX;

impl Default for IdleEntry {
    fn default() -> Self {
        Self { at: UP, waker: None }
    }
}

impl Idle {
    fn new(workers: usize) -> Self {
        let places = std::iter::repeat_with(IdleEntry::default).take(workers).collect();
        Self { stack: Vec::new(), places }
    }

    fn grow_to(&mut self, workers: usize) {
        if workers > self.places.len() {
            self.places.resize_with(workers, IdleEntry::default);
        }
    }

    fn push(&mut self, worker: usize, waker: Option<Waker>) {
        let place = &mut self.places[worker];
        debug_assert_eq!(place.at, UP, "nobody parks twice");
        *place = IdleEntry { at: self.stack.len(), waker };
        self.stack.push(worker);
    }

    /// From the top.
    fn last(&self, many: usize) -> impl Iterator<Item = usize> {
        self.stack.iter().rev().take(many).copied()
    }

    #[inline]
    fn pop(&mut self) -> Option<Picked> {
        let worker = self.stack.pop()?;
        Some(self.pick(worker))
    }

    /// None when the worker was not there.
    #[inline(always)]
    fn remove(&mut self, worker: usize) -> Option<Picked> {
        let is_there = match self.stack.last() == Some(&worker) {
            true => self.stack.pop().is_some(),
            false => self.remove_below(worker),
        };
        is_there.then(|| self.pick(worker))
    }

    /// As `remove`, of a worker that is not the last to have fallen asleep; its waker stays
    /// in its place.
    #[cold]
    fn remove_below(&mut self, worker: usize) -> bool {
        let at = self.places[worker].at;
        if at == UP {
            return false;
        }
        self.stack.swap_remove(at);
        if let Some(moved) = self.stack.get(at) {
            self.places[*moved].at = at;
        }
        true
    }

    #[inline]
    fn pick(&mut self, worker: usize) -> Picked {
        let place = &mut self.places[worker];
        place.at = UP;
        Picked { worker, waker: place.waker.take() }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::Arc,
        task::{Context, Wake as Woken},
    };

    use super::*;

    /// Says whether it was woken.
    #[derive(Default)]
    struct Task(AtomicBool);

    impl Woken for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl Task {
        fn was_woken(&self) -> bool {
            self.0.swap(false, Ordering::Relaxed)
        }
    }

    /// Polls the first worker, which is parked, once, as this task.
    fn rest_on(
        wake: &Wake,
        park_token: &mut ParkToken,
        task: &Arc<Task>,
    ) -> Poll<Option<WakeReason>> {
        let waker = Waker::from(task.clone());
        let mut woken = pin!(wake.woken_or_called(0, park_token, || false, || false));
        woken.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn one() -> (Wake, WatchdogHandle, [Arc<Task>; 2]) {
        (Wake::new(1, 1), WatchdogHandle::none(), Default::default())
    }

    #[test]
    fn who_parks_and_says_what_wakes_it_is_woken_also_before_it_rests() {
        let (wake, watchdog, [task, _]) = one();
        let mut park_token = wake.park(0, Some(Waker::from(task.clone())));
        assert!(wake.one_more(&watchdog) && task.was_woken());
        assert_eq!(rest_on(&wake, &mut park_token, &task), Poll::Ready(Some(WakeReason::Any)));
    }

    #[test]
    fn who_rests_on_another_task_than_before_is_woken_there() {
        let (wake, watchdog, [first, second]) = one();
        let mut park_token = wake.park(0, Some(Waker::from(first.clone())));
        assert!(rest_on(&wake, &mut park_token, &first).is_pending());
        assert!(rest_on(&wake, &mut park_token, &second).is_pending());
        assert!(wake.one_more(&watchdog));
        assert_eq!((first.was_woken(), second.was_woken()), (false, true));
        assert_eq!(rest_on(&wake, &mut park_token, &second), Poll::Ready(Some(WakeReason::Any)));
        drop(wake);
        assert_eq!(Arc::strong_count(&first), 1, "nobody keeps what wakes it");
    }

    #[test]
    fn who_has_not_said_what_wakes_it_finds_out_that_it_is_unparked() {
        let (wake, watchdog, [task, _]) = one();
        let mut park_token = wake.park(0, None);
        assert!(wake.one_more(&watchdog));
        assert_eq!(rest_on(&wake, &mut park_token, &task), Poll::Ready(Some(WakeReason::Any)));
        let mut park_token = wake.park(0, None);
        assert!(rest_on(&wake, &mut park_token, &task).is_pending());
        assert!(wake.call(0, &watchdog) && task.was_woken());
        assert_eq!(rest_on(&wake, &mut park_token, &task), Poll::Ready(Some(WakeReason::Any)));
    }

    #[test]
    fn workers_leave_the_list_from_anywhere_each_with_its_own_waker() {
        let tasks: [Arc<Task>; 3] = Default::default();
        let (wake, watchdog) = (Wake::new(3, 3), WatchdogHandle::none());
        for (worker, task) in tasks.iter().enumerate() {
            let _rest = wake.park(worker, Some(Waker::from(task.clone())));
        }
        wake.forget(0, &watchdog);
        assert_eq!(wake.idle(), 2);
        assert!(wake.call(1, &watchdog) && !wake.call(1, &watchdog) && !wake.call(0, &watchdog));
        assert_eq!(tasks.each_ref().map(|task| task.was_woken()), [false, true, false]);
        wake.all();
        assert_eq!(tasks.each_ref().map(|task| task.was_woken()), [false, false, true]);
        assert_eq!((wake.idle(), wake.awake()), (0, 2));
    }
}
