//! The state that changes when a worker's handler suspends.

use std::{mem, sync::Arc, task, time::Duration};

use greenroom_queue::sync::{Ordering, fence, has_budget_remaining};

use super::{RunState, Source};
use crate::{
    Actor,
    pool::{
        core::{
            Core,
            place::{release, suspend},
            serve::take_back_handed,
            waiters::serve_waiters_in_blocks,
        },
        pool_payload::Key,
    },
};

/// The state that changes when a worker's handler suspends, and nothing else. So a handler can be
/// polled together with this while the rest of the state in flight is lent out.
#[repr(C)]
pub(crate) struct WorkerContext<A: Actor, K: Key> {
    pub(crate) core: Arc<Core<A, K>>,
    pub(crate) slot: usize,
    pub(crate) run_state: RunState,
    /// A handler has suspended since this was last reset.
    pub(crate) has_suspended: bool,
    pub(crate) source: Source,
    /// Present if the times of the message in hand are measured.
    pub(crate) polls: Option<Polls>,
}

/// How long the handler of a measured message has computed: the time inside its polls. The time
/// that it waited says nothing about how many messages may be measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polls {
    /// The start of the current one, in nanoseconds.
    since: u64,
    /// The total of those before it.
    before: Option<Duration>,
}

impl Polls {
    pub(super) fn begin(now: u64) -> Self {
        Self { since: now, before: None }
    }

    /// The handler suspends.
    pub(crate) fn pause(&mut self, now: u64) {
        self.before = Some(self.computed(now));
    }

    /// The handler is polled again.
    pub(crate) fn go_on(&mut self, now: u64) {
        self.since = now;
    }

    pub(super) fn computed(&self, now: u64) -> Duration {
        let at_hand = Duration::from_nanos(now.saturating_sub(self.since));
        self.before.unwrap_or_default() + at_hand
    }

    pub(super) fn has_waited(&self) -> bool {
        self.before.is_some()
    }
}

impl<A: Actor, K: Key> WorkerContext<A, K> {
    pub(crate) fn go_on(&mut self) {
        if let Some(polls) = &mut self.polls {
            polls.go_on(self.core.frame.telemetry.coarse.real());
        }
        self.core.note_time();
        if self.core.goes_on_uncounted() {
            self.run_state = RunState::Uncounted;
            self.core.frame.clock.watchdog.call();
            return;
        }
        self.core.queue.wake.enter(&self.core.frame.clock.watchdog);
        self.run_state = RunState::Awake;
    }

    /// Gives up a place that is noted nowhere else. Returns true if there is more to give up.
    #[inline]
    fn leaves_shard(&mut self) -> bool {
        if let Source::Shared { alone: false, .. } = self.source {
            self.source = Source::None;
        }
        !matches!(self.source, Source::None | Source::Lane { .. })
    }

    pub(crate) fn suspend(&mut self, task: &task::Context<'_>) {
        if !self.core.frame.telemetry.coarse.is_watched() {
            // The message in hand counts from now on, if the clock was not read for it.
            let slot_state = self.core.frame.membership.slots.at(self.slot);
            slot_state.busy_since(|| self.core.frame.telemetry.coarse.set());
        }
        // A used-up cooperative budget makes ready resources look pending, and would open lanes
        // needlessly.
        if !has_budget_remaining() {
            return task.waker().wake_by_ref();
        }
        let leaves_shard = self.leaves_shard();
        if leaves_shard {
            self.source = suspend(&self.core.queue, self.slot, self.source);
        }
        match self.run_state {
            RunState::Uncounted if leaves_shard => {
                self.core.queue.wake.pass_on(&self.core.frame.clock.watchdog)
            }
            RunState::Uncounted => {}
            _ => self.core.queue.wake.leave(&self.core.frame.clock.watchdog),
        }
        if let Some(polls) = &mut self.polls {
            polls.pause(self.core.frame.telemetry.coarse.real());
        }
        self.has_suspended = true;
        self.run_state = RunState::Suspended;
        serve_waiters_in_blocks(&self.core);
    }

    /// Handlers usually waited when the last one of this worker resumed, and do not any more: the
    /// worker counts as awake again. So does a worker that drains a shard in any case: the watchdog
    /// checks its token only if it sees an awake worker.
    #[inline]
    pub(crate) fn counts_again(&mut self) {
        if self.run_state == RunState::Uncounted
            && (!self.core.queue.wake.waits() || matches!(self.source, Source::Head { .. }))
        {
            self.wake_up();
        }
    }

    pub(crate) fn give_up_place(&mut self) {
        let source = mem::replace(&mut self.source, Source::None);
        release(&self.core.queue, self.slot, source);
    }

    pub(crate) fn wake_up(&mut self) {
        self.core.note_time();
        self.core.queue.wake.enter(&self.core.frame.clock.watchdog);
        self.run_state = RunState::Awake;
    }

    /// The caller has no message in hand and is not polled for a while.
    pub(crate) fn rest(&mut self) {
        self.leave();
        self.core.serve_waiters();
        self.core.frame.lifecycle.notify_progress();
    }

    /// The worker does not count from now on, whatever it did before.
    pub(super) fn leave(&mut self) {
        let (core, worker) = (&self.core, self.slot);
        let (wake, watchdog) = (&core.queue.wake, &core.frame.clock.watchdog);
        match mem::replace(&mut self.run_state, RunState::Suspended) {
            // A handler may panic when it is dropped, while it is suspended: others continue from
            // the place that the worker has given up since.
            RunState::Suspended => wake.pass_on(watchdog),
            RunState::Parked => {
                wake.forget(worker, watchdog);
                take_back_handed(core, worker);
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
        if self.run_state == RunState::Suspended {
            self.wake_up();
        }
    }

    /// The worker has found nothing and steps aside once: in that time senders fill the queues and
    /// need not wake a worker. It may count as one that checks again.
    pub(crate) fn begin_search(&mut self) {
        // Pairs with the fence in `grant_to_all`: a waiter sees the messages that this worker has
        // started, or the worker sees `starved`. Otherwise a sender would wait while the worker
        // searches.
        fence(Ordering::SeqCst);
        self.core.serve_waiters();
        if self.core.queue.wake.begin_search() {
            self.run_state = RunState::Searching;
        }
    }

    /// It is back, and is about to look at every shard.
    pub(crate) fn end_search(&mut self) {
        if self.run_state == RunState::Searching {
            self.core.queue.wake.end_search();
            self.run_state = RunState::Awake;
        }
    }
}
