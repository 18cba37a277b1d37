//! What changes when a worker's handler suspends.

use std::{sync::Arc, task, time::Duration};

use greenroom_queue::sync::has_budget_remaining;

use super::{RunState, Source};
use crate::{
    Actor,
    pool::{core::Core, pool_payload::Key},
};

/// The state that changes when a worker's handler suspends, and nothing else, so that a handler is
/// polled with this beside it while the rest of what is in flight is lent out.
#[repr(C)]
pub(crate) struct WorkerContext<A: Actor, K: Key> {
    pub(crate) core: Arc<Core<A, K>>,
    pub(crate) slot: usize,
    pub(crate) run_state: RunState,
    /// A handler has, since this was last reset.
    pub(crate) has_suspended: bool,
    pub(crate) source: Source,
    /// Present if the times of the message in hand are measured.
    pub(crate) polls: Option<Polls>,
}

/// How long the handler of a measured message has computed: the time inside its polls. The time
/// that it waited says nothing about how many messages may be measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polls {
    /// When the one at hand began, in nanoseconds.
    since: u64,
    /// Those before it.
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

    /// It is polled again.
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

    /// Gives up a place that is noted nowhere else. True if there is more to give up.
    #[inline]
    fn leaves_shard(&mut self) -> bool {
        if let Source::Shared { alone: false, .. } = self.source {
            self.source = Source::None;
        }
        !matches!(self.source, Source::None | Source::Lane { .. })
    }

    pub(crate) fn suspend(&mut self, task: &task::Context<'_>) {
        if !self.core.frame.telemetry.coarse.is_watched() {
            // The message in hand counts from now on, if the clock has not been read for it.
            self.core
                .frame
                .membership
                .slots
                .at(self.slot)
                .busy_since(|| self.core.frame.telemetry.coarse.set());
        }
        // A used-up cooperative budget makes ready resources look pending, and would open lanes for
        // nothing.
        if !has_budget_remaining() {
            return task.waker().wake_by_ref();
        }
        let leaves_shard = self.leaves_shard();
        if leaves_shard {
            self.source = self.core.suspend(self.slot, self.source);
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
        self.core.serve_waiters_in_blocks();
    }
}
