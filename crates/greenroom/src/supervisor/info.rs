//! The information of a supervisor on its children.

use std::sync::Arc;

use super::child::ChildId;

/// A child, as its supervisor sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Its id.
    pub id: ChildId,
    /// Its name.
    pub name: Arc<str>,
    /// Its state.
    pub state: ChildState,
    /// How often it was restarted, because of itself or another child.
    pub restarts: u64,
}

/// The state of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChildState {
    /// Being started for the first time.
    Starting,
    /// At work.
    Running,
    /// Down, or on its way down, to be restarted.
    Restarting,
    /// Down, because its budget is used up. [`enable`](crate::supervisor::SupervisorHandle::enable)
    /// brings it back.
    Disabled,
    /// Ended, by its policy, or because it is being stopped.
    Stopped,
}
