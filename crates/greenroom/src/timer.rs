//! Timers: a message to an actor later, or again and again.
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

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::Instant;

use crate::Address;

mod every;
mod once;
mod ticket;
mod wheel;

pub use self::ticket::TimerState;
use self::{
    every::Every,
    once::Once,
    ticket::Ticket,
    wheel::{Alarm, Wheel},
};

/// The shortest period, the resolution of the clock beneath. A shorter one would be a loop that
/// keeps a thread busy.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

/// A timer that was set. **Dropping it does not cancel the timer**; [`cancel`](Self::cancel) does.
#[derive(Debug)]
pub struct Timer {
    ticket: Arc<Ticket>,
    wheel: Weak<Wheel>,
}

impl<M: Send + 'static, R: Send + 'static, E: Send + 'static> Address<M, R, E> {
    /// Sends a message after this long. When the mailbox is full then, the message waits in line
    /// like that of any sender, in a task of its own, and holds the address meanwhile. When the
    /// actor is gone, it is dropped.
    ///
    /// May be called from any thread: the timer runs on the pool's runtime.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # use std::time::Duration;
    /// # struct Clerk; impl Actor for Clerk { type Message = &'static str; type Reply = (); type Error = ();
    /// # async fn handle(&mut self, _: &'static str, _: &mut Context<Self>) -> Result<(), ()> { Ok(()) } }
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let clerk = Pool::new(|_slot| Clerk).workers(1).spawn().await?;
    /// let timer = clerk.send_after("time is up", Duration::from_secs(30));
    /// assert!(timer.cancel(), "it was still pending");
    /// # Ok(()) }
    /// ```
    pub fn send_after(&self, message: M, delay: Duration) -> Timer {
        let once = Once::new(self.downgrade(), message);
        Timer::set(self, delay, |_| Box::new(once))
    }

    /// Sends copies of a message, the first one after one period. See
    /// [`send_every_with`](Self::send_every_with).
    pub fn send_every(&self, message: M, period: Duration) -> Timer
    where
        M: Clone,
    {
        self.send_every_with(move || message.clone(), period)
    }

    /// Sends what `make` returns, the first time after one period (of at least a millisecond). A
    /// tick that finds the mailbox full is skipped, and so are ticks that the runtime was too
    /// late for: they are [counted](Timer::skipped), never sent in a burst. The time between
    /// ticks does not drift.
    ///
    /// `make` runs on the task that serves all timers of the runtime: it must not block. A panic
    /// in it ends the timer.
    pub fn send_every_with(
        &self,
        make: impl FnMut() -> M + Send + 'static,
        period: Duration,
    ) -> Timer {
        let period = period.max(SHORTEST_PERIOD);
        let to = self.downgrade();
        Timer::set(self, period, |first| Box::new(Every::new(to, period, first, make)))
    }
}

impl Timer {
    fn set<M, R, E>(
        address: &Address<M, R, E>,
        delay: Duration,
        alarm: impl FnOnce(Instant) -> Box<dyn Alarm>,
    ) -> Self {
        let wheel = Wheel::of(address.runtime());
        let ticket = wheel.set(address.runtime(), delay, alarm);
        Self { ticket, wheel: Arc::downgrade(&wheel) }
    }

    /// Cancels the timer. True when it was pending: nothing more is sent (of a periodic timer, at
    /// most the one tick that is being sent at this moment), and the message is dropped now. False
    /// when it has fired, ended or been cancelled before.
    pub fn cancel(&self) -> bool {
        if !self.ticket.leave_pending(TimerState::Cancelled) {
            return false;
        }
        if let Some(wheel) = self.wheel.upgrade() {
            wheel.remove(&self.ticket);
        }
        self.ticket.abort_waiting();
        true
    }

    /// The state of the timer.
    pub fn state(&self) -> TimerState {
        self.ticket.state()
    }

    /// Ticks of a periodic timer that were not sent, because the mailbox was full or
    /// the runtime was late.
    pub fn skipped(&self) -> u64 {
        self.ticket.skipped()
    }
}
