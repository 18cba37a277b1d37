//! The overflow policy: what a pool does when it is full.

use std::fmt;

use crate::Address;

/// The overflow policy for a message that finds no room: in the pool, at a worker that a policy has
/// chosen, or, as a copy for each, at one of several. A message to a single worker's own address
/// always waits for that worker.
pub enum Overflow<M, R, E> {
    /// `send` and `call` wait, first come, first served; `try_send` gives it back.
    ///
    /// If handlers usually wait for something, a pool that was full is filled in blocks until it is
    /// found half empty: a `send` that finds less than a sixteenth of the capacity free (4,096
    /// messages at most) waits until that much is free, or for 10 ms. Serving a sender for each
    /// message would cost more than the message.
    Wait,
    /// It goes back to the sender at once, whichever method sent it.
    Reject,
    /// It is dropped: [`NotAccepted::Dropped`](crate::NotAccepted::Dropped).
    DropNewest,
    /// It enters; the oldest waiting message becomes a dead letter, and its caller
    /// gets [`CallError::Evicted`](crate::CallError::Evicted).
    DropOldest,
    /// It goes to this address, as if it had been sent there. A pool is built after its fallback,
    /// so fallbacks have no cycles.
    Fallback(Address<M, R, E>),
}

impl<M, R, E> Overflow<M, R, E> {
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Wait)
    }
}

impl<M, R, E> fmt::Debug for Overflow<M, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "Wait",
            Self::Reject => "Reject",
            Self::DropNewest => "DropNewest",
            Self::DropOldest => "DropOldest",
            Self::Fallback(_) => "Fallback(..)",
        })
    }
}
