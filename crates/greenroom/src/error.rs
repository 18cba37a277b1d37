//! One error type per operation. Where a message was not accepted, the error gives it back.

use std::fmt;

/// Why [`send`](crate::Address::send) did not accept a message.
#[non_exhaustive]
pub enum SendError<M> {
    /// The pool is stopping or has stopped.
    Stopped(M),
    /// No worker is left to handle it.
    NoWorkers(M),
}

/// Why [`try_send`](crate::Address::try_send) did not accept a message.
#[non_exhaustive]
pub enum TrySendError<M> {
    /// The capacity is used up.
    Full(M),
    /// The pool is stopping or has stopped.
    Stopped(M),
    /// No worker is left to handle it.
    NoWorkers(M),
}

/// The same errors without the message, for types that want `Debug`, `Send` and `'static` of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAccepted {
    /// The capacity is used up.
    #[error("the pool is full")]
    Full,
    /// The pool is stopping or has stopped.
    #[error("the pool has stopped")]
    Stopped,
    /// No worker is left.
    #[error("the pool has no workers left")]
    NoWorkers,
}

impl<M> SendError<M> {
    /// The message.
    pub fn into_message(self) -> M {
        match self {
            Self::Stopped(message) | Self::NoWorkers(message) => message,
        }
    }

    /// The reason alone.
    pub fn without_message(&self) -> NotAccepted {
        match self {
            Self::Stopped(_) => NotAccepted::Stopped,
            Self::NoWorkers(_) => NotAccepted::NoWorkers,
        }
    }
}

impl<M> TrySendError<M> {
    pub(crate) fn new(message: M, why: NotAccepted) -> Self {
        match why {
            NotAccepted::Full => Self::Full(message),
            NotAccepted::Stopped => Self::Stopped(message),
            NotAccepted::NoWorkers => Self::NoWorkers(message),
        }
    }

    /// The message.
    pub fn into_message(self) -> M {
        match self {
            Self::Full(message) | Self::Stopped(message) | Self::NoWorkers(message) => message,
        }
    }

    /// The reason alone.
    pub fn without_message(&self) -> NotAccepted {
        match self {
            Self::Full(_) => NotAccepted::Full,
            Self::Stopped(_) => NotAccepted::Stopped,
            Self::NoWorkers(_) => NotAccepted::NoWorkers,
        }
    }
}

impl<M> From<SendError<M>> for TrySendError<M> {
    fn from(error: SendError<M>) -> Self {
        match error {
            SendError::Stopped(message) => Self::Stopped(message),
            SendError::NoWorkers(message) => Self::NoWorkers(message),
        }
    }
}

macro_rules! opaque_error {
    ($name:ident) => {
        impl<M> fmt::Debug for $name<M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "::{:?}(..)"), self.without_message())
            }
        }

        impl<M> fmt::Display for $name<M> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.without_message().fmt(f)
            }
        }

        impl<M> std::error::Error for $name<M> {}
    };
}

opaque_error!(SendError);
opaque_error!(TrySendError);

/// How a call ended without a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The handler failed with this error.
    #[error("the handler failed")]
    Failed(E),
    /// The handler panicked, and the failure policy makes no further attempt.
    #[error("the handler panicked: {0}")]
    Panicked(String),
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
    #[error("the pool has stopped")]
    Stopped,
    /// No worker is left to handle the message.
    #[error("the pool has no workers left")]
    NoWorkers,
    /// The caller's own limit passed; there is none unless it is asked for.
    #[error("there was no answer in time")]
    TimedOut,
}

/// Why a pool could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// A setting is out of its range.
    #[error("{setting} is {value}, but must be {range}")]
    OutOfRange {
        /// Which setting.
        setting: &'static str,
        /// What was asked for.
        value: usize,
        /// What is possible.
        range: &'static str,
    },
    /// Not one worker could be started.
    #[error("no worker of pool {pool} could be started: {reason}")]
    NoWorkerStarted {
        /// The pool's name.
        pool: String,
        /// What the first failed start said.
        reason: String,
    },
}
