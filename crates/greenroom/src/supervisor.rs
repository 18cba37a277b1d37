//! Supervisors: the order of starts, which children restart together, and when to give up.
//!
//! A pool restarts its own workers. It cannot know that the cache behind it must be refilled after
//! the connection in front of it was lost, or that a program with half its parts is worse than
//! none. A supervisor does: it starts its children in order, restarts them by a [`Strategy`], and
//! stops them in reverse order.
//!
//! ```text
//!                        root                    OneForOne
//!            ┌────────────┼─────────────┐
//!        metrics     connections      front      started from left to right, stopped from right to left
//!                    ┌────┴────┐
//!                 session    cache               RestForOne: a new session needs a new cache
//! ```
//!
//! * **A child that fails** is restarted at once, then with backoff, within its own budget
//!   ([`Restarts`](crate::Restarts)). [`RestartPolicy`](crate::RestartPolicy) says which ends are
//!   failures; when the budget is used up, [`OnExceeded`] decides.
//! * **Its address and its queue stay.** Senders notice nothing but the wait; the message that
//!   killed it follows the failure table.
//! * **A start that fails during a restart** is retried with backoff, forever, and costs nothing of
//!   the budget.
//! * **A supervisor that gives up** is a failed child of its own supervisor, which restarts it with
//!   everything under it.
//!
//! The price: one task per supervisor while it runs, and another one for each child that is being
//! started or stopped. Each event costs time in proportion to the children.
//!
//! If all children are alike, use a pool: it has thousands of workers at a lower price.

use std::sync::Arc;

mod change;
pub(crate) mod child;
mod error;
#[cfg(test)]
mod fake;
mod handle;
mod hands;
mod info;
mod keeper;
mod plan;
mod report;
mod runner;
mod runs;
mod spec;
mod strategy;
mod terms;
#[cfg(test)]
mod tests;
mod waiting;

pub use self::{
    change::Change,
    child::ChildId,
    error::{ChangeError, ChildError, SupervisorError},
    handle::SupervisorHandle,
    info::{ChildInfo, ChildState},
    report::{ChildStop, SupervisorEnd, SupervisorReport},
    spec::{ChildSpec, OnExceeded},
    strategy::Strategy,
};
use self::{
    keeper::Keeper,
    plan::{Fall, Plan},
};
use crate::{chance::Chance, pool::clock::timed};

/// A supervisor that is being set up. Nothing runs before [`spawn`](Self::spawn), or before its own
/// supervisor ([`child`](Self::child)) starts it.
///
/// ```
/// use greenroom::{Stop, Supervisor, supervisor::{ChildSpec, Strategy}};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connections = Supervisor::new(Strategy::RestForOne).name("connections");
/// let root = Supervisor::new(Strategy::OneForOne)
///     .name("root")
///     .child(ChildSpec::new(connections).permanent())
///     .spawn()
///     .await?;
/// let mut added = root.add(Supervisor::new(Strategy::OneForAll).name("front"))?;
/// added.done(Duration::from_secs(1)).await?;
///
/// let names: Vec<_> = root.children().into_iter().map(|child| child.name.to_string()).collect();
/// assert_eq!(names, ["connections", "front"]);
/// let report = root.stop(Stop::within(Duration::from_secs(30))).await;
/// assert_eq!(&*report.children[0].name, "front"); // the last one first
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until it is spawned"]
pub struct Supervisor {
    strategy: Strategy,
    name: String,
    seed: Option<u64>,
    children: Vec<ChildSpec>,
}

impl Supervisor {
    /// A supervisor without children.
    pub fn new(strategy: Strategy) -> Self {
        Self { strategy, name: "supervisor".to_owned(), seed: None, children: Vec::new() }
    }

    /// Its name in logs and reports. `supervisor` by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// One more child, started after those before it. With the defaults of [`ChildSpec::new`], or
    /// as a [`ChildSpec`] says.
    pub fn child(mut self, child: impl Into<ChildSpec>) -> Self {
        self.children.push(child.into());
        self
    }

    /// The seed of the backoff's jitter, so that a test can be repeated. Random by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts the children in order, each when the one before is up.
    ///
    /// # Errors
    /// A child did not start. Children that had started are stopped, the last one first, and
    /// nothing is left running. A supervisor needs a tokio runtime with time enabled.
    ///
    /// # Cancel safety
    /// A dropped future stops the children that have started, like
    /// [`Stop::Now`](crate::Stop::Now).
    pub async fn spawn(self) -> Result<SupervisorHandle, SupervisorError> {
        timed::current(&self.name).map_err(|error| SupervisorError::of_runtime(&error))?;
        SupervisorHandle::start(self.keeper(Fall::Stop)).await
    }

    fn keeper(self, last_fall: Fall) -> Arc<Keeper> {
        let plan = Plan::new(self.strategy, last_fall);
        let chance = self.seed.map_or_else(Chance::default, Chance::seeded);
        Arc::new(Keeper::new(self.name.into(), plan, chance, self.children))
    }
}

impl From<Supervisor> for ChildSpec {
    fn from(supervisor: Supervisor) -> Self {
        Self::plain(supervisor.keeper(Fall::Suspend))
    }
}

impl_debug!([] Supervisor, |this| strategy: this.strategy, name: this.name,
    children: this.children);
