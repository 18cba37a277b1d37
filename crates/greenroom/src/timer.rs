//! Timers: a message to an actor later, or periodically.
//!
//! ```text
//! send_after ─┐                        ┌─ room: the message is queued
//!             ├─▶ wheel, one task ─due─┤
//! send_every ─┘   per runtime          └─ full: one-shot waits in line, a tick is skipped and counted
//! ```
//!
//! All timers of a runtime share one task, which sleeps on the runtime's own timer wheel until the
//! earliest of them is due, and ends when none is left. A pending timer is an entry in an ordered
//! map: about 200 bytes with a small message, no task, and gone at once when it is cancelled.
//! Setting and cancelling cost logarithmic time; timers that are due at the same instant fire in
//! the order in which they were set. Time is tokio's: monotonic, with a resolution of a
//! millisecond, virtual in tests that pause it.
//!
//! A timer does not keep its actor alive. When the actor is gone, the next tick ends the timer.

use std::{sync::Arc, time::Duration};

use crate::Address;

mod every;
mod once;
mod ticket;
mod wheel;

pub use self::ticket::TimerState;
use self::{
    every::Every,
    once::Once,
    ticket::{Stage, Ticket},
};

/// The shortest period, the resolution of the clock beneath. A shorter one would be a loop that
/// keeps a thread busy.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// A timer that was set. **Dropping it does not cancel the timer**; [`cancel`](Self::cancel) does.
#[derive(Debug)]
pub struct Timer(Arc<Ticket>);

impl Timer {
    /// For a message that is sent once.
    pub(crate) fn once<M: Send + 'static, R: Send + 'static, E: Send + 'static>(
        to: &Address<M, R, E>,
        message: M,
        delay: Duration,
    ) -> Self {
        let once = Once::new(to.downgrade(), message);
        Self(wheel::set(to.runtime(), delay, Box::new(once)))
    }

    /// For messages that `make` returns.
    pub(crate) fn every<M: Send + 'static, R: Send + 'static, E: Send + 'static>(
        to: &Address<M, R, E>,
        make: impl FnMut() -> M + Send + 'static,
        period: Duration,
    ) -> Self {
        let period = period.max(SHORTEST_PERIOD);
        let every = Every { to: to.downgrade(), period, make };
        Self(wheel::set(to.runtime(), period, Box::new(every)))
    }

    /// Cancels the timer. True if it was pending: nothing more is sent (from a periodic timer, at
    /// most the one tick that is being sent at this moment), and the message is dropped now. False
    /// if it had already fired, ended or been cancelled.
    pub fn cancel(&self) -> bool {
        match self.0.leave_pending(TimerState::Cancelled) {
            Some(Stage::Due(at)) => wheel::remove(&self.0, at),
            Some(Stage::Waiting(task)) => task.abort(),
            Some(Stage::Over(_)) | None => return false,
        }
        true
    }

    /// The state of the timer.
    pub fn state(&self) -> TimerState {
        self.0.state()
    }

    /// Ticks of a periodic timer that were not sent, because the mailbox was full or
    /// the runtime was late.
    pub fn skipped(&self) -> u64 {
        self.0.skipped()
    }
}
