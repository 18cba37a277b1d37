//! The errors of a supervisor: one error type per operation.

use super::{child::ChildId, report::SupervisorEnd};
use crate::SpawnError;

/// Why a supervisor could not be spawned. No part of it is left running.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// It ended before all children were up: one did not start, one ended it, or it was stopped.
    #[error("the supervisor ended during its start: {0}")]
    Ended(SupervisorEnd),
    /// There is no tokio runtime for it to run on.
    #[error("the supervisor was spawned outside of a tokio runtime")]
    NoRuntime,
    /// The tokio runtime has no time, which a supervisor needs for its waits.
    #[error(
        "the supervisor was spawned in a tokio runtime without time: build it with `enable_time` or `enable_all`"
    )]
    NoTime,
}

impl SupervisorError {
    /// From the error about the runtime that it was to be spawned on.
    pub(super) fn of_runtime(error: &SpawnError) -> Self {
        match error {
            SpawnError::NoTime { .. } => Self::NoTime,
            _ => Self::NoRuntime,
        }
    }
}

/// Why a supervisor refused to change its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The supervisor is stopping or has stopped.
    #[error("the supervisor is not running")]
    NotRunning,
    /// There is no such child, or it is being removed.
    #[error("there is no child {0}")]
    Unknown(ChildId),
    /// The child is not down, so there is nothing to enable.
    #[error("child {0} is not disabled")]
    NotDisabled(ChildId),
}

/// Why a change that has begun did not finish.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// It is still in progress; it continues, and can be queried again.
    #[error("the change is still in progress")]
    UnderWay,
    /// The child that was to be added did not start, and was removed.
    #[error("the child could not be started: {reason}")]
    StartFailed {
        /// The error of the start.
        reason: String,
    },
    /// Another change came first: the child was removed, or the supervisor ended.
    #[error("another change came first")]
    Overtaken,
}
