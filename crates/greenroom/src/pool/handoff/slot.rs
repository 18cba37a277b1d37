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

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll, Waker},
};

use greenroom_queue::{
    lock::{Lock, Locked, locked},
    stamp::Stamp,
};

use super::exchange::Exchange;

/// Between one worker and its callers.
pub(crate) struct HandoffSlot<T: Exchange>(Lock<Between<T>>);

/// Message, response and port have a place each, which is empty except in the steps that name it:
/// nothing is ever overwritten, and so dropped, under the lock.
struct Between<T: Exchange> {
    step: HandoffStep,
    /// The message was there at the last look for a message that is left lying.
    was_seen: bool,
    /// Messages for which the worker has come that were handed over.
    came: u64,
    stamp: Stamp,
    message: Option<T::Message>,
    response: Option<T::Response>,
    promised: Option<T::Promise>,
    port: Option<T::Port>,
    /// The caller, if it does not do the worker's work but waits until there is something.
    waiter: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandoffStep {
    /// No caller is there.
    Shut,
    /// From a caller that goes on to poll the worker.
    Message,
    /// From a caller that has the worker woken, and waits.
    Handed,
    /// As `Handed`, and its caller has gone.
    Abandoned,
    /// The worker has it; its caller polls the worker, or waits.
    InHand,
    /// For the caller, which is still there.
    Answered,
    /// For the caller, which is still there: the response comes this way, if any.
    Promised,
    /// The caller has left, and waits for what comes out of this port.
    Waits,
}

/// Whether a message that was handed over is waited for.
pub(crate) enum Caller<Port> {
    /// The response goes through the handoff slot.
    Waits,
    /// Its caller has gone, as the port says.
    Gone(Port),
}

/// What a caller that waits is told.
pub(crate) enum HandedOutcome<Response, Promise> {
    Response(Response),
    /// It is to come this way.
    Later(Promise),
}

/// What a caller takes along that has done the worker's work.
pub(crate) enum InPlaceOutcome<Message, Response, Promise> {
    /// The message: the worker had something else to do.
    Message(Message),
    Response(Response),
    /// It is to come.
    Later(Promise),
}

/// What a caller of this exchange is told.
pub(crate) type HandedOutcomeOf<T> =
    HandedOutcome<<T as Exchange>::Response, <T as Exchange>::Promise>;

/// What a caller of this exchange takes along.
pub(crate) type InPlaceOutcomeOf<T> =
    InPlaceOutcome<<T as Exchange>::Message, <T as Exchange>::Response, <T as Exchange>::Promise>;

/// A message that was handed over and taken back. It has a port now.
pub(crate) type Retracted<T> = (<T as Exchange>::Message, Stamp, <T as Exchange>::Port);

impl<T: Exchange> HandoffSlot<T> {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Between {
            step: HandoffStep::Shut,
            was_seen: false,
            came: 0,
            stamp: Stamp::NONE,
            message: None,
            response: None,
            promised: None,
            port: None,
            waiter: None,
        }))
    }

    /// For the caller, before it polls the worker. False, with the message left in place, if
    /// another caller is still there: a worker that was idle just now may have been unparked, for a
    /// caller whose handler has suspended.
    pub(crate) fn put(&self, message: &mut Option<T::Message>, stamp: Stamp) -> bool {
        locked(&self.0).put(message, stamp)
    }

    /// For a caller that has the worker woken, and waits. False, with the message and the waker
    /// left in place, if another caller is still there.
    pub(crate) fn hand(
        &self,
        message: &mut Option<T::Message>,
        stamp: Stamp,
        waiter: &mut Option<Waker>,
    ) -> bool {
        let mut between = locked(&self.0);
        if !between.put(message, stamp) {
            return false;
        }
        between.step = HandoffStep::Handed;
        between.waiter = waiter.take();
        between.was_seen = false;
        true
    }

    /// For the worker, when a caller does its work: puts the message where it is handled from.
    /// False if there is no caller.
    #[inline]
    pub(crate) fn take(&self, message: &mut Option<T::Message>, stamp: &mut Stamp) -> bool {
        let mut between = locked(&self.0);
        let is_there = between.step == HandoffStep::Message;
        if is_there {
            between.take(message, stamp);
        }
        is_there
    }

    /// For the worker, when a caller waits: puts the message where it is handled from. None if the
    /// message has been taken back.
    #[inline(always)]
    pub(crate) fn take_handed(
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

    /// Takes the message back that a caller has handed over, because the worker does not take it.
    #[cold]
    pub(crate) fn retract(&self, now: impl FnOnce() -> Stamp) -> Option<Retracted<T>> {
        retract(locked(&self.0), now)
    }

    /// As `retract`, if the message was already there at the last call. If `whole` is false, only
    /// finds that out. Also returns for how many messages the worker has come.
    pub(crate) fn retract_what_is_left(
        &self,
        whole: bool,
        now: impl FnOnce() -> Stamp,
    ) -> (u64, Option<Retracted<T>>) {
        let mut between = locked(&self.0);
        let came = between.came;
        let was_seen = between.has_handed() && std::mem::replace(&mut between.was_seen, true);
        (came, if was_seen && whole { retract(between, now) } else { None })
    }

    /// When the message was handed over that waits for the worker.
    pub(crate) fn handed_at(&self, now: impl FnOnce() -> Stamp) -> Option<Stamp> {
        let mut between = locked(&self.0);
        between.has_handed().then(|| between.stamp_it(now))
    }

    /// True if a message that was handed over waits for the worker.
    pub(crate) fn has_handed(&self) -> bool {
        locked(&self.0).has_handed()
    }

    /// For a caller that waits.
    #[inline(always)]
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<HandedOutcomeOf<T>> {
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
    pub(crate) fn give_up(&self) {
        let (unwanted, nobody) = T::open();
        drop(nobody);
        let mut between = locked(&self.0);
        let waiter = between.waiter.take();
        let left = (between.response.take(), between.promised.take());
        between.step = match between.step {
            HandoffStep::Handed => HandoffStep::Abandoned,
            HandoffStep::InHand => {
                between.port = Some(unwanted);
                HandoffStep::Waits
            }
            _ => HandoffStep::Shut,
        };
        drop(between);
        // A response may be in it, and is the caller's.
        drop((waiter, left));
    }

    /// For the worker that has taken a message and has a response. Returns that if it is not wanted
    /// any more.
    #[inline]
    pub(crate) fn answer(&self, response: T::Response) -> Result<(), T::Response> {
        let mut between = locked(&self.0);
        if between.step != HandoffStep::InHand {
            return answer_elsewhere(between, response);
        }
        between.response = Some(response);
        let waiter = between.notify(HandoffStep::Answered);
        drop(between);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        Ok(())
    }

    /// For the worker that has taken a message whose response goes another way: the port for it.
    pub(crate) fn port(&self) -> Option<T::Port> {
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
        waiter.into_iter().for_each(Waker::wake);
        Some(port)
    }

    /// For a caller that does the worker's work, once the worker has been polled.
    #[inline]
    pub(crate) fn leave(&self) -> InPlaceOutcomeOf<T> {
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

impl<T: Exchange> Between<T> {
    /// False, with the message left in place, if a caller is there.
    #[inline]
    fn put(&mut self, message: &mut Option<T::Message>, stamp: Stamp) -> bool {
        if self.step != HandoffStep::Shut || message.is_none() {
            return false;
        }
        self.message = message.take();
        self.stamp = stamp;
        self.step = HandoffStep::Message;
        true
    }

    #[inline]
    fn take(&mut self, message: &mut Option<T::Message>, stamp: &mut Stamp) {
        *message = self.message.take();
        *stamp = self.stamp;
        self.step = HandoffStep::InHand;
    }

    fn has_handed(&self) -> bool {
        matches!(self.step, HandoffStep::Handed | HandoffStep::Abandoned)
    }

    /// When the message came. If the clock was not read for it, its time is that of the first call.
    fn stamp_it(&mut self, now: impl FnOnce() -> Stamp) -> Stamp {
        if self.stamp == Stamp::UNDATED {
            self.stamp = now();
        }
        self.stamp
    }

    /// There is something for the caller, which is woken if it waits.
    #[inline]
    fn notify(&mut self, what: HandoffStep) -> Option<Waker> {
        self.step = what;
        self.waiter.take()
    }
}

fn retract<T: Exchange>(
    mut between: Locked<'_, Between<T>>,
    now: impl FnOnce() -> Stamp,
) -> Option<Retracted<T>> {
    if !between.has_handed() {
        return None;
    }
    let (port, promise) = T::open();
    let (message, stamp) = (between.message.take()?, between.stamp_it(now));
    let mut waiter = None;
    if between.step == HandoffStep::Handed {
        between.promised = Some(promise);
        waiter = between.notify(HandoffStep::Promised);
    } else {
        between.step = HandoffStep::Shut;
    }
    drop(between);
    if let Some(waiter) = waiter {
        // Foreign code, while no other place has the message.
        let _ = catch_unwind(AssertUnwindSafe(|| waiter.wake()));
    }
    Some((message, stamp, port))
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
        task::Wake,
    };

    use tokio::sync::oneshot;

    use super::*;

    /// Numbers both ways.
    struct Numbers;

    impl Exchange for Numbers {
        type Message = u8;
        type Response = u8;
        type Port = oneshot::Sender<u8>;
        type Promise = oneshot::Receiver<u8>;

        fn open() -> (Self::Port, Self::Promise) {
            oneshot::channel()
        }

        fn respond(port: Self::Port, response: u8) -> Result<(), u8> {
            port.send(response)
        }
    }

    type Small = HandoffSlot<Numbers>;

    fn now() -> Stamp {
        Stamp::coarse(5)
    }

    fn put(handoff_slot: &Small, number: u8) -> bool {
        let mut message = Some(number);
        let taken = handoff_slot.put(&mut message, Stamp::default());
        assert_eq!(message.is_none(), taken, "it is in one place");
        taken
    }

    fn given() -> Small {
        let handoff_slot = Small::new();
        assert!(put(&handoff_slot, 7));
        handoff_slot
    }

    fn take(handoff_slot: &Small) -> Option<u8> {
        let (mut message, mut stamp) = (None, Stamp::NONE);
        assert_eq!(handoff_slot.take(&mut message, &mut stamp), message.is_some());
        message
    }

    fn taken() -> Small {
        let handoff_slot = given();
        assert_eq!(take(&handoff_slot), Some(7));
        assert_eq!(take(&handoff_slot), None, "a message is taken once");
        handoff_slot
    }

    #[test]
    fn nobody_comes_while_somebody_is_there_or_waits() {
        let handoff_slot = given();
        assert!(!put(&handoff_slot, 1));
        assert!(take(&handoff_slot).is_some());
        assert!(!put(&handoff_slot, 1));
        let InPlaceOutcome::Later(mut promise) = handoff_slot.leave() else {
            panic!("it is in hand")
        };
        assert!(!put(&handoff_slot, 1));
        assert_eq!(handoff_slot.answer(8), Ok(()));
        assert_eq!(promise.try_recv(), Ok(8));
        assert!(put(&handoff_slot, 1));
    }

    #[test]
    fn what_is_not_taken_goes_back() {
        let handoff_slot = given();
        assert!(matches!(handoff_slot.leave(), InPlaceOutcome::Message(7)));
        assert!(take(&handoff_slot).is_none());
    }

    #[test]
    fn an_answer_while_the_caller_is_there_needs_no_port() {
        let handoff_slot = taken();
        assert_eq!(handoff_slot.answer(8), Ok(()));
        assert!(matches!(handoff_slot.leave(), InPlaceOutcome::Response(8)));
        assert!(put(&handoff_slot, 1), "it is shut, and can be used again");
    }

    #[test]
    fn an_answer_after_the_caller_has_left_comes_out_of_its_port() {
        let handoff_slot = taken();
        let InPlaceOutcome::Later(mut promise) = handoff_slot.leave() else {
            panic!("it is in hand")
        };
        assert_eq!(handoff_slot.answer(8), Ok(()));
        assert_eq!(promise.try_recv(), Ok(8));
    }

    #[test]
    fn a_caller_that_waits_no_more_leaves_the_response_with_the_worker() {
        let handoff_slot = taken();
        drop(handoff_slot.leave());
        assert_eq!(handoff_slot.answer(8), Err(8));
    }

    #[test]
    fn a_port_is_the_same_before_and_after_the_caller_has_left() {
        for leaves_first in [false, true] {
            let handoff_slot = taken();
            let early = leaves_first.then(|| handoff_slot.leave());
            let port = handoff_slot.port().unwrap();
            let left = early.unwrap_or_else(|| handoff_slot.leave());
            let InPlaceOutcome::Later(mut promise) = left else {
                panic!("there is no response yet")
            };
            assert_eq!(port.send(9), Ok(()));
            assert_eq!(promise.try_recv(), Ok(9), "left first: {leaves_first}");
        }
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A message that is handed over, and the waker of its caller.
    fn handed() -> (Small, Arc<Wakes>) {
        let (handoff_slot, wakes) = (Small::new(), Arc::new(Wakes::default()));
        let mut waiter = Some(Waker::from(wakes.clone()));
        assert!(handoff_slot.hand(&mut Some(7), Stamp::default(), &mut waiter));
        assert!(waiter.is_none() && handoff_slot.has_handed());
        (handoff_slot, wakes)
    }

    fn take_handed(handoff_slot: &Small) -> Option<(u8, Caller<oneshot::Sender<u8>>)> {
        let (mut message, mut stamp) = (None, Stamp::NONE);
        let caller = handoff_slot.take_handed(&mut message, &mut stamp)?;
        Some((message.unwrap(), caller))
    }

    fn woken(wakes: &Wakes) -> u32 {
        wakes.0.load(Ordering::Relaxed)
    }

    fn poll(handoff_slot: &Small, wakes: &Arc<Wakes>) -> Poll<HandedOutcomeOf<Numbers>> {
        handoff_slot.poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
    }

    #[test]
    fn who_hands_a_message_over_is_woken_for_the_response() {
        let (handoff_slot, wakes) = handed();
        assert_eq!(take(&handoff_slot), None, "nobody does the worker's work");
        assert!(!put(&handoff_slot, 1));
        assert!(matches!(take_handed(&handoff_slot), Some((7, Caller::Waits))));
        assert!(
            take_handed(&handoff_slot).is_none()
                && !handoff_slot.has_handed()
                && handoff_slot.retract(now).is_none()
        );
        assert!(poll(&handoff_slot, &wakes).is_pending());
        assert_eq!((woken(&wakes), handoff_slot.answer(8), woken(&wakes)), (0, Ok(()), 1));
        let mut waiter = Some(Waker::from(wakes.clone()));
        assert!(
            !handoff_slot.hand(&mut Some(9), Stamp::default(), &mut waiter),
            "it is not collected"
        );
        assert!(waiter.is_some());
        assert!(matches!(poll(&handoff_slot, &wakes), Poll::Ready(HandedOutcome::Response(8))));
        assert!(handoff_slot.hand(&mut Some(9), Stamp::default(), &mut waiter));
    }

    #[test]
    fn a_port_is_told_to_who_waits() {
        let (handoff_slot, wakes) = handed();
        assert!(take_handed(&handoff_slot).is_some());
        let port = handoff_slot.port().unwrap();
        assert_eq!(woken(&wakes), 1);
        let Poll::Ready(HandedOutcome::Later(mut promise)) = poll(&handoff_slot, &wakes) else {
            panic!("it is told")
        };
        assert_eq!(port.send(9), Ok(()));
        assert_eq!(promise.try_recv(), Ok(9));
    }

    #[test]
    fn what_is_taken_back_has_a_port_of_which_its_caller_is_told() {
        let (handoff_slot, wakes) = handed();
        assert!(
            handoff_slot.retract_what_is_left(true, now).1.is_none(),
            "it was not there before"
        );
        assert!(
            handoff_slot.retract_what_is_left(false, now).1.is_none(),
            "nobody else could take it"
        );
        let (0, Some((message, _, port))) = handoff_slot.retract_what_is_left(true, now) else {
            panic!("it was there before")
        };
        assert_eq!((message, woken(&wakes)), (7, 1));
        assert!(take_handed(&handoff_slot).is_none() && handoff_slot.retract(now).is_none());
        let Poll::Ready(HandedOutcome::Later(mut promise)) = poll(&handoff_slot, &wakes) else {
            panic!("it is told")
        };
        assert_eq!(port.send(9), Ok(()));
        assert_eq!(promise.try_recv(), Ok(9));
    }

    #[test]
    fn who_gives_up_leaves_a_message_that_is_abandoned_or_a_response_that_is_unwanted() {
        for retracted in [false, true] {
            let (handoff_slot, wakes) = handed();
            handoff_slot.give_up();
            assert!(handoff_slot.has_handed() && !put(&handoff_slot, 1));
            let port = match retracted {
                true => handoff_slot.retract(now).unwrap().2,
                false => match take_handed(&handoff_slot) {
                    Some((7, Caller::Gone(port))) => port,
                    _ => panic!("nobody waits for it"),
                },
            };
            assert!(port.is_closed() && put(&handoff_slot, 1));
            assert_eq!(woken(&wakes), 0);
        }
        let (handoff_slot, _) = handed();
        assert!(take_handed(&handoff_slot).is_some());
        handoff_slot.give_up();
        assert_eq!(handoff_slot.answer(8), Err(8));
        assert!(put(&handoff_slot, 1));
        let (handoff_slot, _) = handed();
        assert!(take_handed(&handoff_slot).is_some());
        assert_eq!(handoff_slot.answer(8), Ok(()));
        handoff_slot.give_up();
        assert!(put(&handoff_slot, 1), "the response has gone with who gave up");
    }

    #[test]
    fn who_polls_last_is_woken() {
        let (handoff_slot, first) = handed();
        let last = Arc::new(Wakes::default());
        assert!(poll(&handoff_slot, &last).is_pending());
        assert!(take_handed(&handoff_slot).is_some());
        assert_eq!(handoff_slot.answer(8), Ok(()));
        assert_eq!((woken(&first), woken(&last)), (0, 1));
    }

    #[test]
    fn a_port_that_is_dropped_resolves_the_caller() {
        let handoff_slot = taken();
        drop(handoff_slot.port());
        let InPlaceOutcome::Later(mut promise) = handoff_slot.leave() else {
            panic!("there is no response")
        };
        assert!(promise.try_recv().is_err());
    }
}
