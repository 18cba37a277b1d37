//! The state that a timer shares with the caller that set it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use greenroom_queue::lock::Mutex;
use tokio::task::AbortHandle;

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
#[repr(u8)]
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
pub(crate) struct Ticket {
    /// Orders timers of the same instant, and tells them apart.
    pub(super) number: u64,
    /// When it is due, in nanoseconds of its wheel. Written and read under the lock of the wheel.
    pub(super) at: AtomicU64,
    /// A `TimerState`. Leaves `Pending` once, by compare and exchange: the winner
    /// has decided its end.
    state: AtomicU8,
    skipped: AtomicU64,
    /// The task in which a one-shot waits for room.
    waiting: Mutex<Option<AbortHandle>>,
}

impl Ticket {
    pub(super) fn new(number: u64, at: u64) -> Self {
        Self {
            number,
            at: AtomicU64::new(at),
            state: AtomicU8::new(TimerState::Pending as u8),
            skipped: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> TimerState {
        let state = self.state.load(Ordering::Acquire);
        let finals = [TimerState::Fired, TimerState::Cancelled, TimerState::Ended];
        finals.into_iter().find(|last| *last as u8 == state).unwrap_or(TimerState::Pending)
    }

    pub(super) fn is_pending(&self) -> bool {
        self.state() == TimerState::Pending
    }

    /// False if another thread has decided before.
    pub(super) fn leave_pending(&self, to: TimerState) -> bool {
        let pending = TimerState::Pending as u8;
        let exchanged =
            self.state.compare_exchange(pending, to as u8, Ordering::AcqRel, Ordering::Relaxed);
        exchanged.is_ok()
    }

    /// The actor was stopped between the decision and the send. Only for the thread that decided.
    pub(super) fn undo_fired(&self) {
        self.state.store(TimerState::Ended as u8, Ordering::Release);
    }

    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Only the wheel's task writes.
    pub(super) fn skip(&self, ticks: u64) {
        self.skipped.fetch_add(ticks, Ordering::Relaxed);
    }

    /// The message waits in this task now; cancelling drops it.
    pub(super) fn waits_in(&self, task: AbortHandle) {
        *self.waiting.lock() = Some(task);
        if !self.is_pending() {
            // Cancelled before the task was known.
            self.abort_waiting();
        }
    }

    pub(super) fn abort_waiting(&self) {
        let task = self.waiting.lock().take();
        if let Some(task) = task {
            task.abort();
        }
    }
}
