//! Picking the worker to wake.

use super::{
    NOBODY, Wake,
    idle_list::{Idle, Picked},
    idle_slot::{ANY, HANDED},
};
use crate::{
    lock::locked,
    sync::{Ordering, fence, this_thread},
    watchdog_handle::WatchdogHandle,
};

/// A limit that is never reached.
const NO_LIMIT: usize = usize::MAX;

/// The number of workers, from the last to fall asleep, that may be handed a message.
const WORKERS_ASKED: usize = 4;

impl Wake {
    /// Wakes an idle worker for this shard, unless enough are awake. Returns true if one was woken.
    /// Call it only if workers keep to shards: with keys they would not clear the shard's bit in
    /// `affinity`, and nothing would take later messages there.
    pub fn one_for(&self, shard: usize, watchdog: &WatchdogHandle) -> bool {
        self.one_within(self.limit, Some(shard), watchdog)
    }

    /// Wakes an idle worker, unless enough are awake. Returns true if one was woken.
    pub fn one(&self, watchdog: &WatchdogHandle) -> bool {
        self.one_within(self.limit, None, watchdog)
    }

    /// Wakes an idle worker although as many are awake as the runtime has threads, because those
    /// have made no progress.
    pub fn one_more(&self, watchdog: &WatchdogHandle) -> bool {
        self.one_within(NO_LIMIT, None, watchdog)
    }

    fn one_within(&self, limit: usize, shard: Option<usize>, watchdog: &WatchdogHandle) -> bool {
        let picked = self.pick(limit, shard, watchdog);
        let woken = picked.is_some();
        picked.into_iter().for_each(Picked::wake);
        woken
    }

    pub(super) fn pick(
        &self,
        limit: usize,
        shard: Option<usize>,
        watchdog: &WatchdogHandle,
    ) -> Option<Picked> {
        loop {
            // Pairs with the fences in `pass_on_to` and `end_search`, and below. The caller has
            // marked its shard: either it sees the lower `awake`, the idle worker, or that none
            // searches, or the worker sees the mark. Otherwise the shard would be abandoned.
            fence(Ordering::SeqCst);
            if limit < NO_LIMIT && self.claim_searcher() {
                return None;
            }
            let awake = self.awake.load(Ordering::Relaxed);
            if awake >= limit || self.idle_count.load(Ordering::Relaxed) == 0 {
                return None;
            }
            let raised = awake + 1;
            // Pairs with the load in `WatchdogHandle::call` and, after `turn_away`, with that in
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
            // seen here. Otherwise it would give up because of a worker that does not exist.
            fence(Ordering::SeqCst);
            if !self.wants_attention() {
                return None;
            }
        }
    }

    /// True if a message may be handed to an idle worker: one may be woken, and no worker on this
    /// thread is about to look at every shard. A guess.
    #[inline]
    pub fn may_hand(&self) -> bool {
        let searching = self.aside.searching.load(Ordering::Relaxed);
        self.awake.load(Ordering::Relaxed) < self.limit
            && self.idle_count.load(Ordering::Relaxed) > 0
            && (searching == NOBODY || searching != this_thread())
    }

    /// Wakes an idle worker for a message that `put` hands to it. `put` runs under the lock of the
    /// list and returns whether it handed the message over: it does not if an earlier caller has
    /// not collected its reply. Returns true if a worker was woken.
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
        // As in `pick`: others have seen one awake worker more than there is.
        self.leave(watchdog);
        false
    }

    /// Wakes this worker if it is idle, for work that only it can do. Returns true if it was woken.
    /// The caller has published the work; a worker that parks checks for it afterwards.
    ///
    /// On a thread of the runtime, the worker then waits where no other thread takes it, until the
    /// caller's task awaits something, and no other worker can do the work. If the caller may
    /// compute for longer, see "A worker that wakes another" in wake/README.md.
    pub fn call(&self, worker: usize, watchdog: &WatchdogHandle) -> bool {
        // Pairs with the fence in `pass_on_to` of a worker that parks: this load sees it in the
        // idle list, or it sees the published work. Otherwise it would sleep through an order or
        // its mail.
        fence(Ordering::SeqCst);
        if !self.idle_slots.at(worker).is_listed.load(Ordering::Relaxed) {
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

    /// Marks that a worker has been taken off the idle list. `awake` has been raised on its behalf
    /// before, unless the worker is going away: once it is notified here, it may lower `awake`. If
    /// the worker is sent to a shard that already has a worker, the first to leave clears the bit
    /// of both; that costs some contention there, and no message. Called under the lock of the
    /// list, so that a worker that dies now finds its wake reason.
    #[inline]
    pub(super) fn unpark(&self, idle: &Idle, worker: usize, wake_reason: u32) {
        let idle_slot = self.idle_slots.at(worker);
        idle_slot.wake_reason.store(wake_reason, Ordering::Relaxed);
        idle_slot.is_listed.store(false, Ordering::Release);
        self.idle_count.store(idle.stack.len(), Ordering::Release);
    }

    /// The caller has found nothing, steps aside once, and then checks again. Returns false if
    /// another worker already does so.
    pub fn begin_search(&self) -> bool {
        let thread = this_thread();
        self.aside
            .searching
            .compare_exchange(NOBODY, thread, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The caller is back and about to look at every shard, or it is dropped and leaves. It may be
    /// on another thread by now and may clear the promise of a later searcher. That costs the later
    /// one a wake-up, and loses no message.
    #[inline]
    pub fn end_search(&self) {
        self.aside.searching.swap(NOBODY, Ordering::AcqRel);
        // Pairs with the fence in `pick`: the sender sees that no worker searches, or the searcher
        // sees its mark in the check that follows. Otherwise each would rely on the other.
        fence(Ordering::SeqCst);
    }

    /// True if a worker searches on this very thread: it looks at the shards that the caller has
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

    /// Wakes every idle worker, to notice a change.
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

    /// Unparks a worker that was taken off the idle list, and counts it as awake. The count comes
    /// first: otherwise a worker whose handler suspends at once would lower `awake` below zero, and
    /// a sender at that moment would take the count for more than the limit and wake no worker.
    fn unpark_counted(&self, idle: &Idle, worker: usize) {
        // Pairs with the loads in `WatchdogHandle::call` and `Wake::awake`, as in `pick`. A pool
        // that is ending need not be watched: `all` does not call the watchdog.
        self.awake.fetch_add(1, Ordering::SeqCst);
        self.unpark(idle, worker, ANY);
    }
}
