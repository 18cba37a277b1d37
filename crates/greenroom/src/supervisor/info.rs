//! What a supervisor says about its children.

use std::sync::Arc;

use super::child::ChildId;

/// A child, as its supervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Which child.
    pub id: ChildId,
    /// Its name.
    pub name: Arc<str>,
    /// How it is.
    pub state: ChildState,
    /// How often it has been started anew, for its own sake or another's.
    pub restarts: u64,
}

/// How a child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChildState {
    /// Being started for the first time.
    Starting,
    /// At work.
    Running,
    /// Down, or on its way down, to be started anew.
    Restarting,
    /// Down, as its budget is used up.
    /// [`enable`](crate::supervisor::SupervisorHandle::enable) brings it back.
    Disabled,
    /// At its end, by its policy, or because it is being stopped.
    Stopped,
}
