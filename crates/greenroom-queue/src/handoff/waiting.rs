//! A caller that has the worker woken, and waits.

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
    /// For a caller that has the worker woken, and waits. False, with the message and the waker
    /// left in place, if another caller is still there.
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

    /// For the worker, when a caller waits: puts the message where it is handled from. None if the
    /// message has been taken back.
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

    /// When the message was handed over that waits for the worker.
    pub fn handed_at(&self, now: impl FnOnce() -> Stamp) -> Option<Stamp> {
        let mut between = locked(&self.0);
        between.has_handed().then(|| between.stamp_it(now))
    }

    /// True if a message that was handed over waits for the worker.
    pub fn has_handed(&self) -> bool {
        locked(&self.0).has_handed()
    }

    /// For a caller that waits.
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
        // What a step says is there.
        Poll::Ready(told.unwrap_or_else(|| HandedOutcome::Later(T::open().1)))
    }

    /// The caller that waits may have come to another task.
    #[cold]
    fn wait_as(&self, waiter: &Waker) {
        let mut other = None;
        loop {
            let mut between = locked(&self.0);
            if !matches!(between.step, HandoffStep::Handed | HandoffStep::InHand) {
                drop(between);
                // There is something since: it comes again.
                user_code_follows();
                return waiter.wake_by_ref();
            }
            if between.waiter.as_ref().is_some_and(|known| known.will_wake(waiter)) {
                return;
            }
            // Foreign code clones and drops it.
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
        // A response may be in it, and is the caller's.
        drop((waiter, left));
    }
}
