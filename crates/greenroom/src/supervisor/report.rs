//! How a supervisor ended.

use std::sync::Arc;

use super::child::ChildId;
use crate::{ExitReason, pool::StopSummary};

/// Why a supervisor ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorEnd {
    /// It was stopped, or its runtime is shutting down.
    #[error("it was stopped")]
    Stopped,
    /// A child whose first start must not fail could not be started.
    #[error("child {child} could not be started: {reason}")]
    StartFailed {
        /// The child's name.
        child: Arc<str>,
        /// The error of the start.
        reason: String,
    },
    /// A child used up its restart budget.
    #[error("the restart budget of child {child} is used up: {reason:?}")]
    Exceeded {
        /// The child's name.
        child: Arc<str>,
        /// Its last exit.
        reason: ExitReason,
    },
    /// A [significant](crate::supervisor::ChildSpec::significant) child has ended.
    #[error("child {child} has ended: {reason:?}")]
    Significant {
        /// The child's name.
        child: Arc<str>,
        /// How it ended.
        reason: ExitReason,
    },
}

impl SupervisorEnd {
    /// The exit reason for its own supervisor. `None` if that already knows.
    pub(crate) fn exit_reason(&self) -> Option<ExitReason> {
        match self {
            Self::Stopped | Self::StartFailed { .. } => None,
            Self::Exceeded { child, .. } => {
                Some(ExitReason::failed(format!("the restart budget of {child} is used up")))
            }
            Self::Significant { .. } => Some(ExitReason::Shutdown),
        }
    }
}

/// How a supervisor ended, and its children.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SupervisorReport {
    /// The reason.
    pub end: SupervisorEnd,
    /// The children in the order in which they stopped: the last one first.
    pub children: Vec<ChildStop>,
}

/// How a child was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildStop {
    /// Its id.
    pub id: ChildId,
    /// Its name.
    pub name: Arc<str>,
    /// The summary of its stop. `None` if it had not answered a second after the deadline.
    pub summary: Option<StopSummary>,
}

impl SupervisorReport {
    /// The report of a supervisor without running children that was stopped.
    pub(crate) fn empty() -> Self {
        Self { end: SupervisorEnd::Stopped, children: Vec::new() }
    }

    /// The summary over all children. A child that did not answer counts as wedged.
    pub fn summary(&self) -> StopSummary {
        let mut all = StopSummary { left_over: 0, wedged: Vec::new() };
        for child in &self.children {
            match &child.summary {
                Some(summary) => {
                    all.left_over += summary.left_over;
                    all.wedged.extend(summary.wedged.iter().cloned());
                }
                None => all.wedged.push(child.name.to_string()),
            }
        }
        all
    }
}
