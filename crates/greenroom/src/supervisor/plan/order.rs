//! The orders of a plan, and its notices.

use std::{sync::Arc, time::Duration};

use crate::{ExitReason, supervisor::child::ChildId};

/// An order for a child. Only one is carried out at a time: an order for a child
/// replaces the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Start { child: ChildId, life: u64 },
    Fall { child: ChildId, how: Fall },
}

impl Order {
    pub(crate) fn child(self) -> ChildId {
        match self {
            Self::Start { child, .. } | Self::Fall { child, .. } => child,
        }
    }
}

/// How far a child goes down: each level includes the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fall {
    Suspend,
    Disable,
    Stop,
}

/// A notice for logs and for waiting callers.
#[derive(Debug)]
pub(crate) enum PlanNotice {
    /// All children have been up.
    Booted,
    /// A child has started.
    Up(ChildId),
    /// A child is restarted after this wait.
    Restarts { child: Arc<str>, after: Duration, reason: ExitReason },
    /// A start failed, and is retried after this wait.
    TriesAgain { child: Arc<str>, after: Duration, reason: String },
    /// A child that was added did not start; it is removed.
    NotAdded { child: ChildId, reason: String },
    /// A child has used up its budget.
    Exceeded { child: Arc<str>, reason: ExitReason },
    /// A child has ended and is not restarted.
    Ended { child: Arc<str>, reason: ExitReason },
    /// A reason that changed nothing. A plan drops none itself: they may contain an error of a
    /// user, and it runs under a lock.
    Spent(ExitReason),
}
