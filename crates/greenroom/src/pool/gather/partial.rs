//! Requests with a part that has no reply.

use crate::CallError;

/// The treatment of a request with a part that has no reply: its worker died, its handler failed,
/// the deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartialPolicy {
    /// The request fails with the part's error, at once; the other parts are abandoned.
    #[default]
    Error,
    /// The error is joined like a result; a late part is joined as [`CallError::TimedOut`].
    Partial,
}

/// Why a request has no joined answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitJoinError<E> {
    /// No worker is alive. Nothing was sent.
    #[error("no worker is alive")]
    NoWorkers,
    /// A part failed, and the policy requires all of them.
    #[error("the part of the worker in slot {slot} failed")]
    PartFailed {
        /// The slot of its worker.
        slot: usize,
        /// How it failed.
        #[source]
        error: CallError<E>,
    },
    /// The deadline passed, and the policy requires all parts.
    #[error("{} parts were not answered in time", unanswered.len())]
    TimedOut {
        /// The slots of their workers.
        unanswered: Vec<usize>,
    },
}
