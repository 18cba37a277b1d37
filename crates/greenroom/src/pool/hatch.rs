//! A hatch: through it, a caller gives an idle worker the message and has the reply back, past queue and port.
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
//! One caller at a time. One who does the worker's work leaves before anybody else can poll that worker again. A call whose
//! handler returns at once allocates nothing. Any other gets a port: from the handler that asks for it, from whatever becomes of
//! the message but a plain reply, or from its caller, who leaves before there is a reply.
//!
//! One who has only had the worker woken waits here instead ([`hand`](Hatch::hand), [`poll`](Hatch::poll)), and is woken when there is
//! something. Should it go before ([`give_up`](Hatch::give_up)), the message is abandoned or the reply unwanted, as with a port. And should the
//! worker not come, the message is taken back ([`retract`](Hatch::retract)), with a port.

use std::{
    fmt,
    task::{Context, Poll, Waker},
};

use super::{
    lock::{Lock, locked},
    stamp::Stamp,
};
use crate::{
    ReplyPort,
    reply::{self, Reply},
};

/// Between one worker and who calls it.
pub(crate) struct Hatch<M, R, E>(Lock<Between<M, R, E>>);

struct Between<M, R, E> {
    state: State<M, R, E>,
    /// Who waits, where it does not do the worker's work, until there is something.
    waiter: Option<Waker>,
    /// The message was there when somebody last looked whether it is left lying.
    was_seen: bool,
}

enum State<M, R, E> {
    /// Nobody is there.
    Shut,
    /// From the caller, who goes on to poll the worker, or waits.
    Message(M, Stamp),
    /// Its caller has gone.
    Abandoned(M, Stamp),
    /// The worker has it, and is polled by its caller.
    InHand,
    /// For the caller, who is still there.
    Answered(R),
    /// For the caller, who is still there: the reply comes this way, if any.
    Promised(Reply<R, E>),
    /// The caller has left, and waits for what comes out of this port.
    Waits(ReplyPort<R, E>),
}

/// A message that a caller has handed over and waits for.
pub(crate) struct Handed<M, R, E> {
    pub(crate) message: M,
    pub(crate) stamp: Stamp,
    /// None where the reply goes through the hatch.
    pub(crate) port: Option<ReplyPort<R, E>>,
}

/// What a caller that waits is told.
pub(crate) enum Told<R, E> {
    Reply(R),
    /// It is to come this way.
    Later(Reply<R, E>),
}

/// What a caller takes along.
pub(crate) enum Left<M, R, E> {
    /// The message: the worker had something else to do.
    Message(M),
    Reply(R),
    /// It is to come.
    Later(Reply<R, E>),
}

impl<M, R, E> Hatch<M, R, E> {
    pub(crate) fn new() -> Self {
        Self(Lock::new(Between { state: State::Shut, waiter: None, was_seen: false }))
    }

    /// For the caller, before it polls the worker. False where somebody else is there still, and the message where it was: a worker
    /// that was idle just now may have got up, for a caller whose handler has suspended.
    pub(crate) fn put(&self, message: &mut Option<M>, stamp: Stamp) -> bool {
        locked(&self.0).put(message, stamp)
    }

    /// For a caller that has the worker woken, and waits. False, with the message and the waker where they were, where somebody
    /// else is there still.
    pub(crate) fn hand(
        &self,
        message: &mut Option<M>,
        stamp: Stamp,
        waiter: &mut Option<Waker>,
    ) -> bool {
        let mut between = locked(&self.0);
        if !between.put(message, stamp) {
            return false;
        }
        between.waiter = waiter.take();
        between.was_seen = false;
        true
    }

    /// For the worker, of a caller that does its work. None where nobody is there.
    pub(crate) fn take(&self) -> Option<(M, Stamp)> {
        let mut between = locked(&self.0);
        if between.waiter.is_some() {
            return None;
        }
        let state = &mut between.state;
        match std::mem::replace(state, State::InHand) {
            State::Message(message, stamp) => Some((message, stamp)),
            other => {
                std::mem::forget(std::mem::replace(state, other));
                None
            }
        }
    }

    /// For the worker, of a caller that waits. None where the message has been taken back.
    pub(crate) fn take_handed(&self) -> Option<Handed<M, R, E>> {
        locked(&self.0).take_handed(State::InHand)
    }

    /// Takes the message back that a caller has handed over, because the worker does not take it.
    #[cold]
    pub(crate) fn retract(&self) -> Option<Handed<M, R, E>> {
        let (port, reply) = reply::channel();
        let mut between = locked(&self.0);
        let mut handed = between.take_handed(State::Promised(reply))?;
        let waiter = between.waiter.take();
        drop(between);
        handed.port.get_or_insert(port);
        waiter.into_iter().for_each(Waker::wake);
        Some(handed)
    }

    /// As `retract`, where the message was there before, when this was asked last.
    pub(crate) fn retract_what_is_left(&self) -> Option<Handed<M, R, E>> {
        let mut between = locked(&self.0);
        let was_seen = between.has_handed() && std::mem::replace(&mut between.was_seen, true);
        drop(between);
        if was_seen { self.retract() } else { None }
    }

    /// True where a message that was handed over waits for the worker.
    pub(crate) fn has_handed(&self) -> bool {
        locked(&self.0).has_handed()
    }

    /// For a caller that waits.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Told<R, E>> {
        let mut between = locked(&self.0);
        if matches!(between.state, State::Message(..) | State::InHand) {
            let is_known = between.waiter.as_ref().is_some_and(|known| known.will_wake(cx.waker()));
            drop(between);
            if !is_known {
                self.wait_as(cx.waker().clone());
            }
            return Poll::Pending;
        }
        Poll::Ready(match std::mem::replace(&mut between.state, State::Shut) {
            State::Answered(reply) => Told::Reply(reply),
            State::Promised(reply) => Told::Later(reply),
            other => {
                drop(between);
                drop(other);
                debug_assert!(false, "who waits is told once");
                Told::Later(reply::channel().1)
            }
        })
    }

    /// The caller that waits has come to another task.
    #[cold]
    fn wait_as(&self, waiter: Waker) {
        let mut between = locked(&self.0);
        match between.state {
            State::Message(..) | State::InHand => {
                let before = between.waiter.replace(waiter);
                drop(between);
                drop(before);
            }
            // There is something since.
            _ => {
                drop(between);
                waiter.wake();
            }
        }
    }

    /// For a caller that waits, and does so no more.
    #[cold]
    pub(crate) fn give_up(&self) {
        let (unwanted, nobody) = reply::channel();
        drop(nobody);
        let mut between = locked(&self.0);
        let waiter = between.waiter.take();
        let left = match std::mem::replace(&mut between.state, State::Shut) {
            State::Message(message, stamp) => {
                fill(&mut between.state, State::Abandoned(message, stamp));
                None
            }
            State::InHand => {
                fill(&mut between.state, State::Waits(unwanted));
                None
            }
            left => Some(left),
        };
        drop(between);
        // A reply may be in it: the caller's.
        drop((waiter, left));
    }

    /// For the worker that has taken a message and has a reply. Gives that back where nobody wants it any more.
    pub(crate) fn answer(&self, reply: R) -> Result<(), R> {
        let mut between = locked(&self.0);
        match std::mem::replace(&mut between.state, State::Shut) {
            State::InHand => {
                fill(&mut between.state, State::Answered(reply));
                let waiter = between.waiter.take();
                drop(between);
                waiter.into_iter().for_each(Waker::wake);
                Ok(())
            }
            State::Waits(port) => {
                drop(between);
                port.reply(reply)
            }
            other => {
                drop(between);
                drop(other);
                debug_assert!(false, "an answer without a caller");
                Err(reply)
            }
        }
    }

    /// For the worker that has taken a message, and whose reply goes another way: the port for it.
    pub(crate) fn port(&self) -> Option<ReplyPort<R, E>> {
        let mut between = locked(&self.0);
        match std::mem::replace(&mut between.state, State::Shut) {
            State::InHand => {
                let (port, reply) = reply::channel();
                fill(&mut between.state, State::Promised(reply));
                let waiter = between.waiter.take();
                drop(between);
                waiter.into_iter().for_each(Waker::wake);
                Some(port)
            }
            State::Waits(port) => Some(port),
            other => {
                between.state = other;
                debug_assert!(false, "a port without a caller");
                None
            }
        }
    }

    /// For a caller that does the worker's work, once that has been polled.
    pub(crate) fn leave(&self) -> Left<M, R, E> {
        let mut between = locked(&self.0);
        match std::mem::replace(&mut between.state, State::Shut) {
            State::Answered(reply) => Left::Reply(reply),
            State::Message(message, _) | State::Abandoned(message, _) => Left::Message(message),
            State::Promised(reply) => Left::Later(reply),
            before @ (State::InHand | State::Shut | State::Waits(_)) => {
                let (port, reply) = reply::channel();
                if matches!(before, State::InHand) {
                    fill(&mut between.state, State::Waits(port));
                }
                Left::Later(reply)
            }
        }
    }
}

impl<M, R, E> Between<M, R, E> {
    /// False, and the message where it was, where somebody is there.
    fn put(&mut self, message: &mut Option<M>, stamp: Stamp) -> bool {
        if !matches!(self.state, State::Shut) {
            return false;
        }
        let Some(message) = message.take() else { return false };
        fill(&mut self.state, State::Message(message, stamp));
        true
    }

    fn has_handed(&self) -> bool {
        let waits = matches!(self.state, State::Message(..)) && self.waiter.is_some();
        waits || matches!(self.state, State::Abandoned(..))
    }

    /// `then` is what the hatch comes to, where its caller is there still.
    fn take_handed(&mut self, then: State<M, R, E>) -> Option<Handed<M, R, E>> {
        if !self.has_handed() {
            return None;
        }
        match std::mem::replace(&mut self.state, State::Shut) {
            State::Message(message, stamp) => {
                fill(&mut self.state, then);
                Some(Handed { message, stamp, port: None })
            }
            State::Abandoned(message, stamp) => {
                let (port, _) = reply::channel();
                Some(Handed { message, stamp, port: Some(port) })
            }
            other => {
                fill(&mut self.state, other);
                None
            }
        }
    }
}

/// Puts something where nothing is. Without a look at what there was, which would be dropped under the lock besides.
fn fill<M, R, E>(state: &mut State<M, R, E>, new: State<M, R, E>) {
    let before = std::mem::replace(state, new);
    debug_assert!(matches!(before, State::Shut), "one caller at a time");
    std::mem::forget(before);
}

impl<M, R, E> fmt::Debug for Hatch<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hatch").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Small = Hatch<u8, u8, ()>;

    fn put(hatch: &Small, number: u8) -> bool {
        let mut message = Some(number);
        let taken = hatch.put(&mut message, Stamp::default());
        assert_eq!(message.is_none(), taken, "it is in one place");
        taken
    }

    fn given() -> Small {
        let hatch = Small::new();
        assert!(put(&hatch, 7));
        hatch
    }

    fn taken() -> Small {
        let hatch = given();
        assert_eq!(hatch.take().map(|(message, _)| message), Some(7));
        assert!(hatch.take().is_none(), "a message is taken once");
        hatch
    }

    #[test]
    fn nobody_comes_while_somebody_is_there_or_waits() {
        let hatch = given();
        assert!(!put(&hatch, 1));
        assert!(hatch.take().is_some());
        assert!(!put(&hatch, 1));
        let Left::Later(mut reply) = hatch.leave() else { panic!("it is in hand") };
        assert!(!put(&hatch, 1));
        assert_eq!(hatch.answer(8), Ok(()));
        assert!(matches!(reply.try_recv(), Ok(Ok(8))));
        assert!(put(&hatch, 1));
    }

    #[test]
    fn what_is_not_taken_goes_back() {
        let hatch = given();
        assert!(matches!(hatch.leave(), Left::Message(7)));
        assert!(hatch.take().is_none());
    }

    #[test]
    fn an_answer_while_the_caller_is_there_needs_no_port() {
        let hatch = taken();
        assert_eq!(hatch.answer(8), Ok(()));
        assert!(matches!(hatch.leave(), Left::Reply(8)));
        assert!(put(&hatch, 1), "it is shut, and can be used again");
    }

    #[test]
    fn an_answer_after_the_caller_has_left_comes_out_of_its_port() {
        let hatch = taken();
        let Left::Later(mut reply) = hatch.leave() else { panic!("it is in hand") };
        assert_eq!(hatch.answer(8), Ok(()));
        assert!(matches!(reply.try_recv(), Ok(Ok(8))));
    }

    #[test]
    fn a_caller_that_waits_no_more_leaves_the_reply_with_the_worker() {
        let hatch = taken();
        drop(hatch.leave());
        assert_eq!(hatch.answer(8), Err(8));
    }

    #[test]
    fn a_port_is_the_same_before_and_after_the_caller_has_left() {
        for leaves_first in [false, true] {
            let hatch = taken();
            let early = leaves_first.then(|| hatch.leave());
            let port = hatch.port().unwrap();
            let left = early.unwrap_or_else(|| hatch.leave());
            let Left::Later(mut reply) = left else { panic!("there is no reply yet") };
            assert_eq!(port.reply(9), Ok(()));
            assert!(matches!(reply.try_recv(), Ok(Ok(9))), "left first: {leaves_first}");
        }
    }

    #[test]
    fn a_port_that_is_dropped_resolves_the_caller() {
        let hatch = taken();
        drop(hatch.port());
        let Left::Later(mut reply) = hatch.leave() else { panic!("there is no reply") };
        assert!(reply.try_recv().is_err());
    }
}
