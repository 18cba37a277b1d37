//! The state shared by a worker and its callers.

use std::task::Waker;

use super::exchange::Exchange;
use crate::stamp::Stamp;

/// Message, response and port have a field each, which is empty except in the steps that name it.
/// So nothing is ever overwritten, and thus dropped, under the lock.
pub(super) struct Between<T: Exchange> {
    pub(super) step: HandoffStep,
    /// The message was already there at the last check for messages left unhandled.
    pub(super) was_seen: bool,
    /// The number of handed-over messages that the worker has come for.
    pub(super) came: u64,
    pub(super) stamp: Stamp,
    pub(super) message: Option<T::Message>,
    pub(super) response: Option<T::Response>,
    pub(super) promised: Option<T::Promise>,
    pub(super) port: Option<T::Port>,
    /// The caller's waker, until there is something for the caller.
    pub(super) waiter: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandoffStep {
    /// No caller is present.
    Shut,
    /// The caller has had the worker woken, and waits.
    Handed,
    /// Like `Handed`, but the caller has gone.
    Abandoned,
    /// The worker has the message; the caller waits.
    InHand,
    /// The response is here, and the caller is still waiting.
    Answered,
    /// The caller is still waiting. The response, if any, arrives at the promise.
    Promised,
    /// The worker has the message, and the caller has gone: the port has no listener.
    Unwanted,
}

impl<T: Exchange> Between<T> {
    pub(super) fn new() -> Self {
        Self {
            step: HandoffStep::Shut,
            was_seen: false,
            came: 0,
            stamp: Stamp::NONE,
            message: None,
            response: None,
            promised: None,
            port: None,
            waiter: None,
        }
    }

    #[inline]
    pub(super) fn take(&mut self, message: &mut Option<T::Message>, stamp: &mut Stamp) {
        *message = self.message.take();
        *stamp = self.stamp;
        self.step = HandoffStep::InHand;
    }

    pub(super) fn has_handed(&self) -> bool {
        matches!(self.step, HandoffStep::Handed | HandoffStep::Abandoned)
    }

    /// When the message came. If the clock was not read for it, this is the time of the first call.
    pub(super) fn stamp_it(&mut self, now: impl FnOnce() -> Stamp) -> Stamp {
        if self.stamp == Stamp::UNDATED {
            self.stamp = now();
        }
        self.stamp
    }

    /// There is something for the caller. Returns its waker if it waits.
    #[inline]
    pub(super) fn notify(&mut self, what: HandoffStep) -> Option<Waker> {
        self.step = what;
        self.waiter.take()
    }
}
