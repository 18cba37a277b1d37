//! A caller that has had the worker woken, and waits.

use std::task::{Context, Poll, Waker};

use super::{
    HandoffSlot,
    between::HandoffStep,
    exchange::Exchange,
    outcome::{Caller, HandedOutcome, HandedOutcomeOf},
};
use crate::{
    lock::{locked, user_code_follows},
    stamp::Stamp,
};

impl<T: Exchange> HandoffSlot<T> {
    /// For a caller that has the worker woken, and waits. Returns false, with the message and the
    /// waker left in place, if another caller is still there.
    pub fn hand(
        &self,
        message: &mut Option<T::Message>,
        stamp: Stamp,
        waiter: &mut Option<Waker>,
    ) -> bool {
        let mut between = locked(&self.0);
        if between.step != HandoffStep::Shut || message.is_none() {
            return false;
        }
        between.message = message.take();
        between.stamp = stamp;
        between.step = HandoffStep::Handed;
        between.waiter = waiter.take();
        between.was_seen = false;
        true
    }

    /// For the worker, when a caller waits: moves the message to where it is handled. Returns
    /// `None` if the message has been taken back.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn take_handed(
        &self,
        message: &mut Option<T::Message>,
        stamp: &mut Stamp,
    ) -> Option<Caller<T::Port>> {
        let mut between = locked(&self.0);
        if !between.has_handed() {
            return None;
        }
        let is_abandoned = between.step == HandoffStep::Abandoned;
        between.take(message, stamp);
        between.came += 1;
        if !is_abandoned {
            return Some(Caller::Waits);
        }
        between.step = HandoffStep::Shut;
        drop(between);
        Some(Caller::Gone(T::open().0))
    }

    /// When the message that waits for the worker was handed over.
    pub fn handed_at(&self, now: impl FnOnce() -> Stamp) -> Option<Stamp> {
        let mut between = locked(&self.0);
        between.has_handed().then(|| between.stamp_it(now))
    }

    /// True if a message that was handed over waits for the worker.
    pub fn has_handed(&self) -> bool {
        locked(&self.0).has_handed()
    }

    /// For a waiting caller.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<HandedOutcomeOf<T>> {
        let mut between = locked(&self.0);
        let told = match between.step {
            HandoffStep::Answered => between.response.take().map(HandedOutcome::Response),
            HandoffStep::Promised => between.promised.take().map(HandedOutcome::Later),
            _ => {
                drop(between);
                self.wait_as(cx.waker());
                return Poll::Pending;
            }
        };
        between.step = HandoffStep::Shut;
        drop(between);
        // A step guarantees that its value is present.
        Poll::Ready(told.unwrap_or_else(|| HandedOutcome::Later(T::open().1)))
    }

    /// The waiting caller may have moved to another task.
    #[cold]
    fn wait_as(&self, waiter: &Waker) {
        let mut other = None;
        loop {
            let mut between = locked(&self.0);
            if !matches!(between.step, HandoffStep::Handed | HandoffStep::InHand) {
                drop(between);
                // Something has arrived in the meantime: the caller polls again.
                user_code_follows();
                return waiter.wake_by_ref();
            }
            if between.waiter.as_ref().is_some_and(|known| known.will_wake(waiter)) {
                return;
            }
            // Cloning and dropping a waker is foreign code.
            match other.take() {
                Some(clone) => {
                    let before = between.waiter.replace(clone);
                    drop(between);
                    return drop(before);
                }
                None => {
                    drop(between);
                    other = Some(waiter.clone());
                }
            }
        }
    }

    /// For a caller that stops waiting.
    #[cold]
    pub fn give_up(&self) {
        let (unwanted, nobody) = T::open();
        drop(nobody);
        let mut between = locked(&self.0);
        let waiter = between.waiter.take();
        let left = (between.response.take(), between.promised.take());
        between.step = match between.step {
            HandoffStep::Handed => HandoffStep::Abandoned,
            HandoffStep::InHand => {
                between.port = Some(unwanted);
                HandoffStep::Unwanted
            }
            _ => HandoffStep::Shut,
        };
        drop(between);
        // It may contain a response, which belongs to the caller.
        drop((waiter, left));
    }
}
