//! A handoff slot: through it, a caller gives an idle worker a message and gets the response back,
//! past queue and port.
//!
//! ```text
//!         the caller                    the worker
//!   Shut ─── hand ──▶ Handed ──────── take_handed ──────▶ InHand
//!                       │ give_up ──▶ Abandoned            │ answer ──▶ Answered ─── poll ──▶ Shut
//!                       │ retract                          │ port ────▶ Promised ─── poll ──▶ Shut
//!                       ▼                                  │ give_up
//!                     Promised ─── poll ──▶ Shut           ▼
//!                                                        Unwanted ─── answer, port ──▶ Shut
//! ```
//!
//! One caller at a time. It has the worker woken, waits here ([`hand`](HandoffSlot::hand),
//! [`poll`](HandoffSlot::poll)), and is woken when there is something for it. A call allocates
//! nothing unless it gets a port: because the handler asks for one, or because the message gets
//! anything but a plain response.
//!
//! If the caller leaves early ([`give_up`](HandoffSlot::give_up)), the message is abandoned or the
//! response is unwanted, as with a port. If the worker does not come, the message is taken back
//! ([`retract`](HandoffSlot::retract)) and gets a port.

mod between;
mod exchange;
mod outcome;
mod retract;
#[cfg(test)]
mod tests;
mod waiting;

pub use exchange::Exchange;
pub use outcome::{Caller, HandedOutcome, HandedOutcomeOf, Retracted};

use std::fmt;

use super::{
    discard::wake_tasks,
    lock::{Lock, Locked, locked},
};
use between::{Between, HandoffStep};

/// The slot between one worker and its callers.
pub struct HandoffSlot<T: Exchange>(Lock<Between<T>>);

impl<T: Exchange> HandoffSlot<T> {
    /// A slot without a caller.
    pub fn new() -> Self {
        Self(Lock::new(Between::new()))
    }

    /// For a worker that has taken a message and has a response. Returns the response if it is no
    /// longer wanted.
    #[inline]
    pub fn answer(&self, response: T::Response) -> Result<(), T::Response> {
        let mut between = locked(&self.0);
        if between.step != HandoffStep::InHand {
            return answer_elsewhere(between, response);
        }
        between.response = Some(response);
        let waiter = between.notify(HandoffStep::Answered);
        drop(between);
        if let Some(waiter) = waiter {
            wake_tasks(|| waiter.wake());
        }
        Ok(())
    }

    /// For a worker that has taken a message whose response goes another way: the port for the
    /// response.
    pub fn port(&self) -> Option<T::Port> {
        let mut between = locked(&self.0);
        if between.step != HandoffStep::InHand {
            debug_assert_eq!(between.step, HandoffStep::Unwanted, "a port has a caller");
            between.step = HandoffStep::Shut;
            return between.port.take();
        }
        let (port, promise) = T::open();
        between.promised = Some(promise);
        let waiter = between.notify(HandoffStep::Promised);
        drop(between);
        waiter.into_iter().for_each(|waiter| wake_tasks(|| waiter.wake()));
        Some(port)
    }
}

/// Like `answer`, once the caller has left the handoff slot.
#[cold]
fn answer_elsewhere<T: Exchange>(
    mut between: Locked<'_, Between<T>>,
    response: T::Response,
) -> Result<(), T::Response> {
    debug_assert_eq!(between.step, HandoffStep::Unwanted, "an answer has a caller");
    between.step = HandoffStep::Shut;
    let port = between.port.take();
    drop(between);
    match port {
        Some(port) => T::respond(port, response),
        None => Err(response),
    }
}

impl<T: Exchange> fmt::Debug for HandoffSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoffSlot").finish_non_exhaustive()
    }
}
