//! A hatch: through it, a caller who does a worker's work gives it the message and has the reply back, past queue and port.
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
//! One caller at a time; it leaves before anybody else can poll that worker again. A call whose handler returns at once allocates nothing. Any other gets a port: from the handler that asks for it, from whatever
//! becomes of the message but a plain reply, or from its caller, who leaves before there is a reply.

use std::fmt;

use super::{
    lock::{Lock, locked},
    stamp::Stamp,
};
use crate::{
    ReplyPort,
    reply::{self, Reply},
};

/// Between one worker and who calls it.
pub(crate) struct Hatch<M, R, E>(Lock<State<M, R, E>>);

enum State<M, R, E> {
    /// Nobody is there.
    Shut,
    /// From the caller, who goes on to poll the worker.
    Message(M, Stamp),
    /// The worker has it, and is polled by its caller.
    InHand,
    /// For the caller, who is still there.
    Answered(R),
    /// For the caller, who is still there: the reply comes this way, if any.
    Promised(Reply<R, E>),
    /// The caller has left, and waits for what comes out of this port.
    Waits(ReplyPort<R, E>),
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
        Self(Lock::new(State::Shut))
    }

    /// For the caller, before it polls the worker. False where somebody else is there still, and the message where it was: a worker
    /// that was idle just now may have got up, for a caller whose handler has suspended.
    pub(crate) fn put(&self, message: &mut Option<M>, stamp: Stamp) -> bool {
        let mut state = locked(&self.0);
        if !matches!(*state, State::Shut) {
            return false;
        }
        let Some(message) = message.take() else { return false };
        fill(&mut state, State::Message(message, stamp));
        true
    }

    /// For the worker. None where nobody is there.
    pub(crate) fn take(&self) -> Option<(M, Stamp)> {
        let mut state = locked(&self.0);
        match std::mem::replace(&mut *state, State::InHand) {
            State::Message(message, stamp) => Some((message, stamp)),
            other => {
                std::mem::forget(std::mem::replace(&mut *state, other));
                None
            }
        }
    }

    /// For the worker that has taken a message and has a reply. Gives that back where nobody wants it any more.
    pub(crate) fn answer(&self, reply: R) -> Result<(), R> {
        let mut state = locked(&self.0);
        match std::mem::replace(&mut *state, State::Shut) {
            State::InHand => {
                fill(&mut state, State::Answered(reply));
                Ok(())
            }
            State::Waits(port) => {
                drop(state);
                port.reply(reply)
            }
            other => {
                drop(state);
                drop(other);
                debug_assert!(false, "an answer without a caller");
                Err(reply)
            }
        }
    }

    /// For the worker that has taken a message, and whose reply goes another way: the port for it.
    pub(crate) fn port(&self) -> Option<ReplyPort<R, E>> {
        let mut state = locked(&self.0);
        match std::mem::replace(&mut *state, State::Shut) {
            State::InHand => {
                let (port, reply) = reply::channel();
                fill(&mut state, State::Promised(reply));
                Some(port)
            }
            State::Waits(port) => Some(port),
            other => {
                *state = other;
                debug_assert!(false, "a port without a caller");
                None
            }
        }
    }

    /// For the caller, once the worker has been polled.
    pub(crate) fn leave(&self) -> Left<M, R, E> {
        let mut state = locked(&self.0);
        match std::mem::replace(&mut *state, State::Shut) {
            State::Answered(reply) => Left::Reply(reply),
            State::Message(message, _) => Left::Message(message),
            State::Promised(reply) => Left::Later(reply),
            before @ (State::InHand | State::Shut | State::Waits(_)) => {
                let (port, reply) = reply::channel();
                if matches!(before, State::InHand) {
                    fill(&mut state, State::Waits(port));
                }
                Left::Later(reply)
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
