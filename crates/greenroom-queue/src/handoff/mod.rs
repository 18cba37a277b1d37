//! A handoff slot: through it, a caller gives an idle worker a message and gets the response back,
//! past queue and port.
//!
//! ```text
//!                        who calls                                      the worker
//!   Shut ──put──▶ Message ─────────────────── take ───────────────────▶ InHand
//!                    │ leave: not taken                                   │ answer ──▶ Answered ──leave──▶ Shut
//!                    ▼                                                    │ port ────▶ Promised ──leave──▶ Shut
//!                  Shut                             leave: it suspended   ▼
//!                                                                       Waits ── answer, port ──▶ Shut
//! ```
//!
//! One caller at a time. A caller that does the worker's work leaves before that worker can be
//! polled again. A call whose handler returns at once allocates nothing. Any other call gets a
//! port: if the handler asks for it, if the message gets anything but a plain response, or if the
//! caller leaves before there is one.
//!
//! A caller that has only had the worker woken waits here instead ([`hand`](HandoffSlot::hand),
//! [`poll`](HandoffSlot::poll)), and is woken when there is something for it. If it goes before
//! ([`give_up`](HandoffSlot::give_up)), the message is abandoned or the response unwanted, as with
//! a port. If the worker does not come, the message is taken back
//! ([`retract`](HandoffSlot::retract)), with a port.

mod between;
mod exchange;
mod outcome;
mod retract;
#[cfg(test)]
mod tests;
mod waiting;

pub use exchange::Exchange;
pub use outcome::{
    Caller, HandedOutcome, HandedOutcomeOf, InPlaceOutcome, InPlaceOutcomeOf, Retracted,
};

use std::fmt;

use super::{
    discard::wake_tasks,
    lock::{Lock, Locked, locked},
    stamp::Stamp,
};
use between::{Between, HandoffStep};

/// Between one worker and its callers.
pub struct HandoffSlot<T: Exchange>(Lock<Between<T>>);

impl<T: Exchange> HandoffSlot<T> {
    /// One at which nobody is.
    pub fn new() -> Self {
        Self(Lock::new(Between::new()))
    }

    /// For the caller, before it polls the worker. False, with the message left in place, if
    /// another caller is still there: a worker that was idle just now may have been unparked, for a
    /// caller whose handler has suspended.
    pub fn put(&self, message: &mut Option<T::Message>, stamp: Stamp) -> bool {
        locked(&self.0).put(message, stamp)
    }

    /// For the worker, when a caller does its work: puts the message where it is handled from.
    /// False if there is no caller.
    #[inline]
    pub fn take(&self, message: &mut Option<T::Message>, stamp: &mut Stamp) -> bool {
        let mut between = locked(&self.0);
        let is_there = between.step == HandoffStep::Message;
        if is_there {
            between.take(message, stamp);
        }
        is_there
    }

    /// For the worker that has taken a message and has a response. Returns that if it is not wanted
    /// any more.
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

    /// For the worker that has taken a message whose response goes another way: the port for it.
    pub fn port(&self) -> Option<T::Port> {
        let mut between = locked(&self.0);
        if between.step != HandoffStep::InHand {
            debug_assert_eq!(between.step, HandoffStep::Waits, "a port has a caller");
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

    /// For a caller that does the worker's work, once the worker has been polled.
    #[inline]
    pub fn leave(&self) -> InPlaceOutcomeOf<T> {
        let mut between = locked(&self.0);
        if between.step == HandoffStep::Answered
            && let Some(response) = between.response.take()
        {
            between.step = HandoffStep::Shut;
            return InPlaceOutcome::Response(response);
        }
        leave_without(between)
    }
}

/// As `answer`, if the caller is not at the handoff slot any more.
#[cold]
fn answer_elsewhere<T: Exchange>(
    mut between: Locked<'_, Between<T>>,
    response: T::Response,
) -> Result<(), T::Response> {
    debug_assert_eq!(between.step, HandoffStep::Waits, "an answer has a caller");
    between.step = HandoffStep::Shut;
    let port = between.port.take();
    drop(between);
    match port {
        Some(port) => T::respond(port, response),
        None => Err(response),
    }
}

/// As `leave`, if there is no response yet.
#[cold]
fn leave_without<T: Exchange>(mut between: Locked<'_, Between<T>>) -> InPlaceOutcomeOf<T> {
    let (port, promise) = T::open();
    let in_hand = between.step == HandoffStep::InHand;
    let left = match (between.message.take(), between.promised.take()) {
        (Some(message), _) => InPlaceOutcome::Message(message),
        (None, Some(promised)) => InPlaceOutcome::Later(promised),
        (None, None) => InPlaceOutcome::Later(promise),
    };
    between.step = if in_hand { HandoffStep::Waits } else { HandoffStep::Shut };
    between.port = in_hand.then_some(port);
    left
}

impl<T: Exchange> fmt::Debug for HandoffSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoffSlot").finish_non_exhaustive()
    }
}
