//! What a plan wants done, and what it has to tell.

use std::time::Duration;

use crate::{ExitReason, supervisor::child::ChildId};

/// What is to be done with a child. Only one thing is done at a time: an order for a child takes
/// the place of the former.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Start { child: ChildId, life: u64 },
    Fall { child: ChildId, how: Fall },
}

/// How a child goes down: each one does what the one before does, and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fall {
    Suspend,
    Disable,
    Stop,
}

/// What happened, for logs and for those who wait for it.
#[derive(Debug)]
pub(crate) enum Notice {
    /// All children have been up.
    Booted,
    /// A child has started.
    Up(ChildId),
    /// A child is restarted after this wait.
    Restarts { child: ChildId, after: Duration, reason: ExitReason },
    /// A start failed, and is tried again after this wait.
    TriesAgain { child: ChildId, after: Duration, reason: String },
    /// A child that was added did not start; it is removed.
    NotAdded { child: ChildId, reason: String },
    /// A child has used up its budget.
    Exceeded { child: ChildId, reason: ExitReason },
    /// A child has ended and is not restarted.
    Ended { child: ChildId, reason: ExitReason },
    /// A reason that changed nothing. A plan drops none itself: they may hold an error of a user,
    /// and it works under a lock.
    Spent(ExitReason),
}
