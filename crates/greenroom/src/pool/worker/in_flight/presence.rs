//! Whether a worker counts as awake, and the place that it has in the queues.

use std::{mem, task::Waker};

use greenroom_queue::{
    sync::{Ordering, fence},
    wake::{ParkToken, WakeReason},
};

use super::{InFlight, RunState, Source};
use crate::{Actor, pool::pool_payload::Key};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// True when the worker is to start no further message.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.worker.core.frame.lifecycle.ended.load(Ordering::Acquire)
            || (self.slot_state.has_orders() && self.slot_state.starts_nothing())
    }

    /// Handlers usually waited when the last one of this worker went on, and do not any more: it
    /// counts as awake again. So does a worker that drains a shard, usual or not: the watchdog
    /// looks at its token only if it sees a worker awake.
    #[inline]
    pub(crate) fn counts_again(&mut self) {
        if self.worker.run_state == RunState::Uncounted
            && (!self.worker.core.queue.wake.waits()
                || matches!(self.worker.source, Source::Head { .. }))
        {
            self.wake_up();
        }
    }

    pub(crate) fn give_up_place(&mut self) {
        let source = mem::replace(&mut self.worker.source, Source::None);
        self.worker.core.release(self.worker.slot, source);
    }

    pub(crate) fn wake_up(&mut self) {
        self.worker.core.note_time();
        self.worker.core.queue.wake.enter(&self.worker.core.frame.clock.watchdog);
        self.worker.run_state = RunState::Awake;
    }

    /// The caller has no message in hand and is not polled for a while.
    pub(crate) fn rest(&mut self) {
        self.leave();
        self.worker.core.serve_waiters();
        self.worker.core.frame.lifecycle.notify_progress();
    }

    /// The worker does not count from here on, however it did.
    pub(super) fn leave(&mut self) {
        let (core, worker) = (&self.worker.core, self.worker.slot);
        let (wake, watchdog) = (&core.queue.wake, &core.frame.clock.watchdog);
        match mem::replace(&mut self.worker.run_state, RunState::Suspended) {
            // A handler may panic when it is dropped, while it is suspended: others go on from the
            // place that the worker has given up since.
            RunState::Suspended => wake.pass_on(watchdog),
            RunState::Parked => {
                wake.forget(worker, watchdog);
                core.take_back_handed(worker);
            }
            RunState::Searching => {
                wake.end_search();
                wake.leave(watchdog);
            }
            RunState::Awake => wake.leave(watchdog),
            RunState::Uncounted => wake.pass_on(watchdog),
        }
    }

    /// The caller's handler was dropped, perhaps while it was suspended.
    pub(crate) fn return_to_work(&mut self) {
        if self.worker.run_state == RunState::Suspended {
            self.wake_up();
        }
    }

    /// The worker has found nothing, and steps aside once: senders fill the queues in that time,
    /// and need not wake a worker. It may count as one that looks again.
    pub(crate) fn begin_search(&mut self) {
        // Pairs with the fence in `grant_to_all`: a waiter sees what this worker has started, or
        // the worker sees `starved`. Otherwise a sender waits while the worker searches.
        fence(Ordering::SeqCst);
        self.worker.core.serve_waiters();
        if self.worker.core.queue.wake.begin_search() {
            self.worker.run_state = RunState::Searching;
        }
    }

    /// It is back, and is about to look at every shard.
    pub(crate) fn end_search(&mut self) {
        if self.worker.run_state == RunState::Searching {
            self.worker.core.queue.wake.end_search();
            self.worker.run_state = RunState::Awake;
        }
    }

    /// Enters the idle list. Says whether another worker was woken for what is ready.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn park(&mut self, waker: Waker) -> (ParkToken, bool) {
        let (core, worker) = (&self.worker.core, self.worker.slot);
        let (wake, watchdog) = (&core.queue.wake, &core.frame.clock.watchdog);
        let park_token = wake.park(worker, Some(waker));
        let woken = match mem::replace(&mut self.worker.run_state, RunState::Parked) {
            RunState::Uncounted => wake.pass_on_to(watchdog),
            _ => wake.leave_to(watchdog),
        };
        core.serve_waiters_at_rest();
        core.frame.lifecycle.notify_progress();
        // Pairs with the store in `end`: the worker is in the idle list by now, so it sees the end,
        // or `all` in `end` finds it. Otherwise it sleeps for ever.
        if core.frame.lifecycle.ended.load(Ordering::SeqCst) {
            wake.all();
        }
        if self.slot_state.has_orders() {
            wake.call(worker, watchdog);
        }
        (park_token, woken.is_some_and(|woken| woken != worker))
    }

    /// For ready work in a queue.
    pub(crate) fn resume(&mut self, wake_reason: WakeReason) {
        self.worker.core.note_time();
        match wake_reason {
            WakeReason::Shard(index) => {
                self.worker.source = Source::BetweenRuns { index, alone: true }
            }
            _ => self.rounds.join = true,
        }
    }
}
