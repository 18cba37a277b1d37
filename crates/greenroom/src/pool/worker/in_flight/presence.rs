//! Whether a worker counts as awake, and its place in the queues.

use std::{mem, task::Waker};

use greenroom_queue::{
    sync::Ordering,
    wake::{ParkToken, WakeReason},
};

use super::{InFlight, RunState, Source};
use crate::{
    Actor,
    pool::{core::waiters::serve_waiters_at_rest, pool_payload::Key},
};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// True if the worker may start no further message.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.worker.core.frame.lifecycle.ended.load(Ordering::Acquire)
            || (self.slot_state.has_orders() && self.slot_state.starts_nothing())
    }

    /// Enters the idle list. Also returns whether another worker was woken for ready work.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn park(&mut self, waker: Waker) -> (ParkToken, bool) {
        let (core, worker) = (&self.worker.core, self.worker.slot);
        let (wake, watchdog) = (&core.queue.wake, &core.frame.clock.watchdog);
        let park_token = wake.park(worker, Some(waker));
        let woken = match mem::replace(&mut self.worker.run_state, RunState::Parked) {
            RunState::Uncounted => wake.pass_on_to(watchdog),
            _ => wake.leave_to(watchdog),
        };
        serve_waiters_at_rest(core);
        core.frame.lifecycle.notify_progress();
        // Pairs with the store in `end`: the worker is in the idle list by now, so it sees the end,
        // or `all` in `end` finds it. Otherwise it would sleep forever.
        if core.frame.lifecycle.ended.load(Ordering::SeqCst) {
            wake.all();
        }
        if self.slot_state.has_orders() {
            wake.call(worker, watchdog);
        }
        (park_token, woken.is_some_and(|woken| woken != worker))
    }

    /// Resumes for ready work in a queue.
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
