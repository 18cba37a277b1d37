//! How a call ends without a reply.

use std::{fmt, mem::discriminant};

use crate::{NotAccepted, SendError};

/// How a call ended without a reply.
///
/// It prints its cause. If the handler's error implements the standard library's `Error`, so does
/// this one, with the handler's as its [`source`](std::error::Error::source).
///
/// A message that was not accepted comes back in [`NotAccepted`](Self::NotAccepted), as from
/// [`send`](crate::Address::send). If no message can come back, `M` is `()`: from
/// [`ask`](crate::Address::ask), from services, and from several workers asked at once. Two errors
/// are equal if they say the same, whatever the message.
///
/// ```
/// # use greenroom::{CallError, Overflow, prelude::*};
/// # struct Clerk;
/// # impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = std::fmt::Error;
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, Self::Error> {
/// # if page == 0 { Err(std::fmt::Error) } else { Ok(page) } } }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).capacity(1).overflow(Overflow::Reject).spawn().await?;
/// let error = pool.call(0).await.unwrap_err();
/// assert!(error.to_string().starts_with("the handler failed: "));
/// let held = pool.reserve().await?;
/// let error = pool.call(7).await.unwrap_err();
/// assert_eq!(if error.is_overload() { 503 } else { 500 }, 503);
/// assert_eq!(error.into_message(), Some(7));
/// # Ok(()) }
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E, M = ()> {
    /// The message was not accepted: it is returned with the reason.
    #[error("{0}")]
    NotAccepted(SendError<M>),
    /// The handler failed with this error.
    #[error("the handler failed: {0}")]
    Failed(#[source] E),
    /// The handler panicked, and the failure policy makes no further attempt.
    #[error("the handler panicked: {0}")]
    Panicked(String),
    /// The worker was killed while it handled the message, and the failure policy makes no further
    /// attempt.
    #[error("the worker was killed while it handled the message")]
    Killed,
    /// The message killed as many workers as the poison limit allows.
    #[error("the message killed {kills} workers and is quarantined")]
    Poisoned {
        /// How many.
        kills: u32,
    },
    /// The reply port was dropped unanswered.
    #[error("the reply port was dropped unanswered")]
    Dropped,
    /// The pool stopped before the message was handled.
    #[error("{}", NotAccepted::Stopped)]
    Stopped,
    /// No worker is left to handle the message.
    #[error("{}", NotAccepted::NoWorkers)]
    NoWorkers,
    /// The message was accepted, and then refused by the
    /// [adopted](crate::PoolAdmin::adopt) actors or pools that should have handled it.
    #[error("{0}")]
    NotTaken(NotAccepted),
    /// The message was accepted, and had to make room for a later one.
    #[error("the message made room for a later one")]
    Evicted,
    /// The key of the message is parked. The message stays in line, and is handled once the key
    /// continues.
    #[error("the key of the message is parked")]
    Parked,
    /// The message was accepted, and withdrawn before it was started: by
    /// [`PoolAdmin::withdraw`](crate::PoolAdmin::withdraw), or because
    /// [`starts_if`](crate::PoolBuilder::starts_if) rejected it.
    #[error("the message was withdrawn before it was handled")]
    Withdrawn,
    /// The deadline of the message passed before it was started.
    #[error("the deadline passed before the message was handled")]
    Expired,
    /// The caller did not wait longer. If the message had been started, it may still be handled.
    #[error("no reply within the caller's limit")]
    TimedOut,
    /// The caller is the very worker that would have to reply. With the message, if it was not
    /// accepted.
    #[error("the call would wait for its own caller")]
    WouldDeadlock(Option<M>),
}

impl<E, M> CallError<E, M> {
    /// The message, if it was not accepted.
    pub fn into_message(self) -> Option<M> {
        match self {
            Self::NotAccepted(error) => error.into_message(),
            Self::WouldDeadlock(message) => message,
            _ => None,
        }
    }

    /// The same error without the message, for types that require `Send`, `Sync` and `'static` of
    /// everything.
    pub fn without_message(self) -> CallError<E> {
        self.with_messages(
            |error| CallError::NotAccepted(SendError::new((), error.without_message())),
            |message| message.map(drop),
        )
    }

    /// True if the message was not handled for lack of room or time: later, or elsewhere, it may
    /// be. A server answers 503 in these cases. The caller's own limit
    /// ([`TimedOut`](Self::TimedOut)) does not count: the message may still be handled.
    pub fn is_overload(&self) -> bool {
        match self {
            Self::NotAccepted(error) => error.is_overload(),
            Self::NotTaken(why) => why.is_overload(),
            Self::Evicted | Self::Expired => true,
            _ => false,
        }
    }

    /// The same error for other messages.
    fn with_messages<N>(
        self,
        not_accepted: impl FnOnce(SendError<M>) -> CallError<E, N>,
        deadlocked: impl FnOnce(Option<M>) -> Option<N>,
    ) -> CallError<E, N> {
        match self {
            Self::NotAccepted(error) => not_accepted(error),
            Self::Failed(error) => CallError::Failed(error),
            Self::Panicked(panic) => CallError::Panicked(panic),
            Self::Killed => CallError::Killed,
            Self::Poisoned { kills } => CallError::Poisoned { kills },
            Self::Dropped => CallError::Dropped,
            Self::Stopped => CallError::Stopped,
            Self::NoWorkers => CallError::NoWorkers,
            Self::NotTaken(why) => CallError::NotTaken(why),
            Self::Evicted => CallError::Evicted,
            Self::Parked => CallError::Parked,
            Self::Withdrawn => CallError::Withdrawn,
            Self::Expired => CallError::Expired,
            Self::TimedOut => CallError::TimedOut,
            Self::WouldDeadlock(message) => CallError::WouldDeadlock(deadlocked(message)),
        }
    }
}

impl<E> CallError<E> {
    /// The result of a reply port, whose message had been accepted.
    pub(crate) fn after_acceptance<M>(self) -> CallError<E, M> {
        self.with_messages(|error| CallError::NotTaken(error.without_message()), |_| None)
    }
}

impl<E, M> From<SendError<M>> for CallError<E, M> {
    fn from(error: SendError<M>) -> Self {
        Self::NotAccepted(error)
    }
}

impl<E: PartialEq, M> PartialEq for CallError<E, M> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NotAccepted(one), Self::NotAccepted(other)) => {
                one.without_message() == other.without_message()
            }
            (Self::Failed(one), Self::Failed(other)) => one == other,
            (Self::Panicked(one), Self::Panicked(other)) => one == other,
            (Self::Poisoned { kills }, Self::Poisoned { kills: others }) => kills == others,
            (Self::NotTaken(one), Self::NotTaken(other)) => one == other,
            (one, other) => discriminant(one) == discriminant(other),
        }
    }
}

impl<E: Eq, M> Eq for CallError<E, M> {}

impl<E: fmt::Debug, M> fmt::Debug for CallError<E, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAccepted(error) => f.debug_tuple("NotAccepted").field(error).finish(),
            Self::Failed(error) => f.debug_tuple("Failed").field(error).finish(),
            Self::Panicked(panic) => f.debug_tuple("Panicked").field(panic).finish(),
            Self::Killed => f.write_str("Killed"),
            Self::Poisoned { kills } => f.debug_struct("Poisoned").field("kills", kills).finish(),
            Self::Dropped => f.write_str("Dropped"),
            Self::Stopped => f.write_str("Stopped"),
            Self::NoWorkers => f.write_str("NoWorkers"),
            Self::NotTaken(why) => f.debug_tuple("NotTaken").field(why).finish(),
            Self::Evicted => f.write_str("Evicted"),
            Self::Parked => f.write_str("Parked"),
            Self::Withdrawn => f.write_str("Withdrawn"),
            Self::Expired => f.write_str("Expired"),
            Self::TimedOut => f.write_str("TimedOut"),
            Self::WouldDeadlock(_) => f.write_str("WouldDeadlock"),
        }
    }
}
