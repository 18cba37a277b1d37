//! A call whose message is queued already.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    CallError,
    pool::handoff::{
        own_call::OwnCall,
        reentrancy::{ReentrancyGuard, Reentrant},
    },
    reply::Reply,
};

/// Waits for the reply of a call; made by [`Permit::call`](crate::pool::Permit::call) and by a
/// [`PoolService`](crate::service::PoolService).
///
/// Its message is queued before the caller waits. If a worker of that pool then waits for the reply
/// itself, and no other worker is left to answer, the call ends in [`CallError::WouldDeadlock`],
/// and the message is skipped when its turn comes.
///
/// # Cancel safety
/// That of [`call`](crate::Address::call): dropping it abandons the call, and a message that has
/// not been started is skipped when its turn comes.
///
/// # Panics
/// If it is polled again after it has resolved.
#[must_use = "dropping it abandons the call"]
pub struct Calling<R, E, M = ()>(State<R, E, M>);

enum State<R, E, M> {
    /// The message is queued or in hand.
    Waiting {
        reply: Reply<R, E>,
        /// Present if a worker of the pool has queued it and has not waited yet.
        own: Option<OwnCall>,
        /// Present while a worker of the pool waits.
        inside: Option<ReentrancyGuard>,
    },
    /// The pool did not accept the message; `None` once this was returned.
    Refused(Option<CallError<E, M>>),
}

/// Nothing is pinned in here.
impl<R, E, M> Unpin for Calling<R, E, M> {}

impl<R, E, M> Calling<R, E, M> {
    pub(super) fn waiting(reply: Reply<R, E>, own: Option<OwnCall>) -> Self {
        Self(State::Waiting { reply, own, inside: None })
    }

    pub(super) fn refused(why: CallError<E, M>) -> Self {
        Self(State::Refused(Some(why)))
    }

    /// The same call, whose error does not give the message back: for contracts that require an
    /// error of any thread.
    pub fn without_message(self) -> Calling<R, E> {
        Calling(match self.0 {
            State::Waiting { reply, own, inside } => State::Waiting { reply, own, inside },
            State::Refused(why) => State::Refused(why.map(CallError::without_message)),
        })
    }
}

impl<R, E, M> Future for Calling<R, E, M> {
    type Output = Result<R, CallError<E, M>>;

    #[expect(
        clippy::expect_used,
        reason = "a documented panic: a future is polled to its end once"
    )]
    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Waiting { reply, own, inside } => {
                if let Poll::Ready(reply) = Pin::new(reply).poll(task) {
                    *inside = None;
                    let reply = reply.unwrap_or(Err(CallError::Dropped));
                    return Poll::Ready(reply.map_err(CallError::after_acceptance));
                }
                match own.take().map_or(Ok(None), OwnCall::enter) {
                    Ok(None) => {}
                    Ok(entered) => *inside = entered,
                    Err(Reentrant) => {
                        self.0 = State::Refused(None);
                        return Poll::Ready(Err(CallError::WouldDeadlock(None)));
                    }
                }
                Poll::Pending
            }
            State::Refused(why) => {
                Poll::Ready(Err(why.take().expect("this call has resolved before")))
            }
        }
    }
}

impl_debug!([R, E, M] Calling<R, E, M>, |this| refused: matches!(this.0, State::Refused(_)));
