//! What lies between a worker and its callers.

use std::task::Waker;

use super::exchange::Exchange;
use crate::stamp::Stamp;

/// Message, response and port have a place each, which is empty except in the steps that name it:
/// nothing is ever overwritten, and so dropped, under the lock.
pub(super) struct Between<T: Exchange> {
    pub(super) step: HandoffStep,
    /// The message was there at the last look for a message that is left lying.
    pub(super) was_seen: bool,
    /// Messages for which the worker has come that were handed over.
    pub(super) came: u64,
    pub(super) stamp: Stamp,
    pub(super) message: Option<T::Message>,
    pub(super) response: Option<T::Response>,
    pub(super) promised: Option<T::Promise>,
    pub(super) port: Option<T::Port>,
    /// The caller, until there is something for it.
    pub(super) waiter: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandoffStep {
    /// No caller is there.
    Shut,
    /// From a caller that has the worker woken, and waits.
    Handed,
    /// As `Handed`, and its caller has gone.
    Abandoned,
    /// The worker has it; its caller waits.
    InHand,
    /// For the caller, which is still there.
    Answered,
    /// For the caller, which is still there: the response comes this way, if any.
    Promised,
    /// The worker has it, and its caller has gone: the port is one that nobody waits at.
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

    /// When the message came. If the clock was not read for it, its time is that of the first call.
    pub(super) fn stamp_it(&mut self, now: impl FnOnce() -> Stamp) -> Stamp {
        if self.stamp == Stamp::UNDATED {
            self.stamp = now();
        }
        self.stamp
    }

    /// There is something for the caller, which is woken if it waits.
    #[inline]
    pub(super) fn notify(&mut self, what: HandoffStep) -> Option<Waker> {
        self.step = what;
        self.waiter.take()
    }
}
