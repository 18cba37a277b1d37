//! One error type per operation. If a message was not accepted, the error gives it back.

use std::fmt;

/// Why [`send`](crate::Address::send) did not accept a message.
#[derive(Clone)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The capacity is used up, and the pool does not let its senders wait.
    Full(M),
    /// The message was dropped: the capacity is used up, and the pool drops new arrivals.
    Dropped,
    /// The policy of the pool has refused it.
    Refused(M),
    /// The pool is stopping or has stopped.
    Stopped(M),
    /// No worker is left to handle it.
    NoWorkers(M),
    /// Its key already has the maximum number of waiting messages: see
    /// [`max_per_key`](crate::PoolBuilder::max_per_key).
    KeyFull(M),
    /// Its key is parked, and its line is full: see [`max_parked`](crate::PoolBuilder::max_parked).
    Parked(M),
    /// It has no key, and the pool requires one.
    KeyRequired(M),
}

/// Why [`try_send`](crate::Address::try_send) did not accept a message: for the same reasons.
pub type TrySendError<M> = SendError<M>;

/// The same errors without the message, for types that require `Debug`, `Send` and `'static` of
/// everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAccepted {
    /// The capacity is used up.
    #[error("the pool is full")]
    Full,
    /// The message was dropped on arrival.
    #[error("the pool is full and drops new messages")]
    Dropped,
    /// The policy of the pool has refused it.
    #[error("the pool's policy has refused the message")]
    Refused,
    /// The pool is stopping or has stopped.
    #[error("the pool has stopped")]
    Stopped,
    /// No worker is left.
    #[error("the pool has no workers left")]
    NoWorkers,
    /// The key has the maximum number of waiting messages.
    #[error("the limit of waiting messages of this key is reached")]
    KeyFull,
    /// The key is parked, and its line is full.
    #[error("the key is parked, and the limit of messages behind it is reached")]
    Parked,
    /// The message has no key.
    #[error("the message has no key, and the pool requires one")]
    KeyRequired,
}

impl NotAccepted {
    /// True if there was no room for it: later, or elsewhere, there may be some. A server answers
    /// 503 then.
    pub fn is_overload(self) -> bool {
        matches!(self, Self::Full | Self::Dropped | Self::KeyFull)
    }
}

/// The reasons that return the message.
macro_rules! returning {
    ($($reason:ident),+) => {
        impl<M> SendError<M> {
            pub(crate) fn new(message: M, why: NotAccepted) -> Self {
                match why {
                    NotAccepted::Dropped => Self::Dropped,
                    $(NotAccepted::$reason => Self::$reason(message)),+
                }
            }

            /// The message, unless it was dropped.
            pub fn into_message(self) -> Option<M> {
                match self {
                    Self::Dropped => None,
                    $(Self::$reason(message))|+ => Some(message),
                }
            }

            /// Only the reason.
            pub fn without_message(&self) -> NotAccepted {
                match self {
                    Self::Dropped => NotAccepted::Dropped,
                    $(Self::$reason(_) => NotAccepted::$reason),+
                }
            }
        }
    };
}

returning!(Full, Refused, Stopped, NoWorkers, KeyFull, Parked, KeyRequired);

impl<M> SendError<M> {
    /// Like [`NotAccepted::is_overload`].
    pub fn is_overload(&self) -> bool {
        self.without_message().is_overload()
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SendError::{:?}(..)", self.without_message())
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.without_message().fmt(f)
    }
}

impl<M> std::error::Error for SendError<M> {}

/// Why a pool could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// A setting is out of its range.
    #[error("{setting} is {value}, but must be {range}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// The requested value.
        value: usize,
        /// The allowed range.
        range: &'static str,
    },
    /// There is no tokio runtime for the pool to run on.
    #[error(
        "pool {pool} was spawned outside of a tokio runtime: spawn it in one, or give it threads of its own with \
         `dedicated_threads`"
    )]
    NoRuntime {
        /// The pool's name.
        pool: String,
    },
    /// The tokio runtime has no time, which a pool needs for its stop, for time limits, retries and
    /// restarts.
    #[error(
        "pool {pool} was spawned in a tokio runtime without time: build the runtime with `enable_time` or \
         `enable_all`, or give the pool threads of its own with `dedicated_threads`"
    )]
    NoTime {
        /// The pool's name.
        pool: String,
    },
    /// The pool's own threads could not be started.
    #[error("the threads of pool {pool} could not be started: {reason}")]
    NoThreads {
        /// The pool's name.
        pool: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The failure policy may ask for a retry or park a key, but there would be no message for
    /// that: handlers own their messages, and the pool keeps no copies.
    #[error(
        "the failure policy of pool {pool} retries or parks, but its handlers own their messages and it keeps no \
         copies: add `keep_copies()`, or use `retry_with` for messages that are not `Clone`, or let the actor's \
         `receive` leave its message in place and say so with `KEEPS_MESSAGE`"
    )]
    NoCopies {
        /// The pool's name.
        pool: String,
    },
    /// The pool should park keys, but has none.
    #[error(
        "pool {pool} should park keys, but has none: give it `ordered_by`, or choose another final action"
    )]
    NoKeys {
        /// The pool's name.
        pool: String,
    },
    /// Shares were named before the order.
    #[error(
        "pool {pool} was given `ordered_by` after `shared_by`, which replaces it: say `shared_by` after it"
    )]
    SharesBeforeOrder {
        /// The pool's name.
        pool: String,
    },
    /// Shares divide one queue, from which all workers take: there is none in a pool that gives
    /// each message to a worker, by a policy or by sticky keys.
    #[error(
        "pool {pool} has shares, which need a queue from which all workers take: leave out `shared_by`, or the \
         policy or `sticky_by`"
    )]
    SharesArePulled {
        /// The pool's name.
        pool: String,
    },
    /// Not one worker could be started.
    #[error("no worker of pool {pool} could be started: {reason}")]
    NoWorkerStarted {
        /// The pool's name.
        pool: String,
        /// The error of the first failed start.
        reason: String,
    },
    /// The pool's keeper could not start.
    #[error("the keeper of pool {pool} could not start: {reason}")]
    KeeperFailed {
        /// The pool's name.
        pool: String,
        /// The error of its `started` hook.
        reason: String,
    },
}
