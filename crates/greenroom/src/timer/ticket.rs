//! The state that a timer shares with the caller that set it.

use std::sync::atomic::{AtomicU64, Ordering};

use greenroom_queue::lock::Mutex;
use tokio::{runtime, task::AbortHandle, time::Instant};

/// The state of a timer.
///
/// | from | by | to |
/// |---|---|---|
/// | `Pending` | the message of a one-shot is sent | `Fired` |
/// | `Pending` | [`cancel`](super::Timer::cancel) | `Cancelled` |
/// | `Pending` | the actor or the runtime is gone, or a function that makes messages panicked | `Ended` |
/// | `Fired` | the actor was stopped at this very moment, and did not accept the message | `Ended` |
///
/// The last two are final. A one-shot timer whose message waits for room is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimerState {
    /// Something is still to be sent.
    Pending,
    /// The message of a one-shot has been sent.
    Fired,
    /// It was cancelled while it was pending.
    Cancelled,
    /// There is no receiver left, or no message.
    Ended,
}

#[derive(Debug)]
pub(super) struct Ticket {
    /// The runtime of the task that serves it.
    pub(super) runtime: runtime::Id,
    /// Orders timers of the same instant.
    pub(super) number: u64,
    stage: Mutex<Stage>,
    skipped: AtomicU64,
}

/// The stage of a timer. The thread that takes it out of the first two has decided its end.
#[derive(Debug)]
pub(super) enum Stage {
    /// It rings at this instant, or is ringing.
    Due(Instant),
    /// A one-shot waits for room, in this task.
    Waiting(AbortHandle),
    Over(TimerState),
}

impl Ticket {
    pub(super) fn new(runtime: runtime::Id, at: Instant) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            runtime,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            stage: Mutex::new(Stage::Due(at)),
            skipped: AtomicU64::new(0),
        }
    }

    pub(super) fn state(&self) -> TimerState {
        match *self.stage.lock() {
            Stage::Over(state) => state,
            Stage::Due(_) | Stage::Waiting(_) => TimerState::Pending,
        }
    }

    pub(super) fn is_pending(&self) -> bool {
        self.state() == TimerState::Pending
    }

    /// Ends it, and returns its stage. `None` if another thread decided first.
    pub(super) fn leave_pending(&self, to: TimerState) -> Option<Stage> {
        let mut stage = self.stage.lock();
        match *stage {
            Stage::Over(_) => None,
            _ => Some(std::mem::replace(&mut *stage, Stage::Over(to))),
        }
    }

    /// The actor was stopped between the decision and the send. Only for the thread that decided.
    pub(super) fn undo_fired(&self) {
        *self.stage.lock() = Stage::Over(TimerState::Ended);
    }

    /// It has rung for the last time: it ends, unless its message waits for room.
    pub(super) fn rang_last(&self) {
        let mut stage = self.stage.lock();
        if let Stage::Due(_) = *stage {
            *stage = Stage::Over(TimerState::Ended);
        }
    }

    /// It has rung, and rings again. False if it was cancelled in the meantime.
    pub(super) fn rings_again(&self, at: Instant) -> bool {
        let mut stage = self.stage.lock();
        let is_due = matches!(*stage, Stage::Due(_));
        if is_due {
            *stage = Stage::Due(at);
        }
        is_due
    }

    /// The message now waits in this task; cancelling drops it.
    pub(super) fn waits_in(&self, task: AbortHandle) {
        let mut stage = self.stage.lock();
        match *stage {
            Stage::Due(_) | Stage::Waiting(_) => *stage = Stage::Waiting(task),
            // Cancelled before the task was known, or already sent.
            Stage::Over(_) => {
                drop(stage);
                task.abort();
            }
        }
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(super) fn skip(&self, ticks: u64) {
        self.skipped.fetch_add(ticks, Ordering::Relaxed);
    }
}
