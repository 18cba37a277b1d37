//! A running supervisor.

use std::sync::Arc;

use super::{
    change::Change,
    child::ChildId,
    error::{ChildError, SupervisorError},
    info::ChildInfo,
    keeper::Keeper,
    plan::Plan,
    report::SupervisorReport,
    runs,
    spec::ChildSpec,
};
use crate::{Stop, pool::StopSummary};

/// A running supervisor: the right to inspect its children, to change them, and to stop it.
///
/// Each method returns at once, even while a child's start hangs or its stop takes long; a
/// [`Change`] reports how the change ended. Dropping the handle stops the supervisor like
/// [`Stop::Now`], without waiting for it.
#[must_use = "dropping the handle stops the supervisor"]
pub struct SupervisorHandle {
    keeper: Arc<Keeper>,
}

impl SupervisorHandle {
    /// A dropped future drops the handle, which stops the children that have started.
    pub(crate) async fn start(keeper: Arc<Keeper>) -> Result<Self, SupervisorError> {
        let handle = Self { keeper };
        runs::start(&handle.keeper, None).await?;
        Ok(handle)
    }

    /// Its name in logs.
    pub fn name(&self) -> &str {
        &self.keeper.name
    }

    /// Adds a child after all others, and begins to start it. If it does not start, it is removed
    /// again, and the change says so. When it has ended for good, it is forgotten.
    ///
    /// # Errors
    /// [`NotRunning`](ChildError::NotRunning); the child is dropped.
    pub fn add(&self, child: impl Into<ChildSpec>) -> Result<Change<()>, ChildError> {
        // A child that is not added is dropped here, after the lock.
        let mut spec = Some(child.into());
        self.keeper.change(|state| state.add(&mut spec))
    }

    /// Begins to stop a child, in its own way and independent of other changes, and then forgets
    /// it. It is not restarted; the end of a removed significant child does not end its supervisor.
    ///
    /// # Errors
    /// [`NotRunning`](ChildError::NotRunning), [`Unknown`](ChildError::Unknown).
    pub fn remove(&self, child: ChildId) -> Result<Change<StopSummary>, ChildError> {
        self.keeper.change(|state| {
            state.plan.remove(child)?;
            Ok(state.waiting.for_gone(child))
        })
    }

    /// Begins to bring back a child that is [disabled](crate::supervisor::ChildState::Disabled), or
    /// has [ended](crate::supervisor::ChildState::Stopped), with a fresh budget. A failed start is
    /// retried with backoff.
    ///
    /// # Errors
    /// [`NotRunning`](ChildError::NotRunning), [`Unknown`](ChildError::Unknown),
    /// [`NotDisabled`](ChildError::NotDisabled).
    pub fn enable(&self, child: ChildId) -> Result<Change<()>, ChildError> {
        self.keeper.change(|state| {
            state.plan.enable(child)?;
            Ok(state.waiting.for_up(child))
        })
    }

    /// The children in start order. Empty once the supervisor has ended.
    pub fn children(&self) -> Vec<ChildInfo> {
        self.keeper.state.lock().plan.children()
    }

    /// Stops the children, the last one first, each in its own way, and then the supervisor.
    ///
    /// With [`Stop::Now`], no child handles its queued messages. With [`Stop::Graceful`], each
    /// child has its own time, and all together have this long: at the deadline the rest are
    /// stopped at once, and those that have not answered a second later are given up. A more urgent
    /// stop overtakes an earlier one. All callers get the same report.
    ///
    /// # Cancel safety
    /// The supervisor continues to stop; call again to see it end.
    pub async fn stop(&self, how: Stop) -> Arc<SupervisorReport> {
        runs::stop(&self.keeper, how).await
    }

    /// Waits until the supervisor has ended: by a stop, or by itself, because a child used up its
    /// budget or a significant one ended.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn ended(&self) -> Arc<SupervisorReport> {
        self.keeper.gone().await;
        self.keeper.report().unwrap_or_else(|| Arc::new(SupervisorReport::empty()))
    }
}

impl Drop for SupervisorHandle {
    fn drop(&mut self) {
        self.keeper.go_down(Stop::Now, Plan::stop);
    }
}

impl_debug!([] SupervisorHandle, |this| name: this.name(), children: this.children());
