//! The terms on which a child is kept.

use std::{sync::Arc, time::Duration};

use super::child::Child;
use crate::{RestartPolicy, Restarts, Stop};

/// The default time for a child to stop; as long as Erlang's supervisors give to a worker.
const DEFAULT_STOP: Duration = Duration::from_secs(5);

/// The reaction of a supervisor to a child that has used up its restart budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnExceeded {
    /// It stops all its children and ends; its own supervisor, if there is one, decides on it.
    #[default]
    StopSupervisor,
    /// The child stays down and refuses work with `NoWorkers`; the others continue.
    /// [`enable`](crate::supervisor::SupervisorHandle::enable) brings it back.
    DisableChild,
}

/// A child and the terms on which it is kept.
///
/// ```
/// # use greenroom::{Restarts, Stop, Supervisor, supervisor::{ChildSpec, OnExceeded, Strategy}};
/// # use std::time::Duration;
/// let group = Supervisor::new(Strategy::RestForOne).name("connections");
/// let spec = ChildSpec::new(group)
///     .permanent()
///     .restarts(Restarts { max: 10, ..Restarts::default() })
///     .on_exceeded(OnExceeded::DisableChild)
///     .stop(Stop::within(Duration::from_secs(30)));
/// let root = Supervisor::new(Strategy::OneForOne).child(spec);
/// # drop(root);
/// ```
#[must_use = "a child is started by its supervisor"]
pub struct ChildSpec {
    pub(crate) child: Arc<dyn Child>,
    /// How it is stopped.
    pub(crate) stop: Stop,
    pub(crate) rules: Rules,
}

/// The rules that decide on a child when it ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) policy: RestartPolicy,
    pub(crate) restarts: Restarts,
    pub(crate) on_exceeded: OnExceeded,
    pub(crate) significant: bool,
}

impl ChildSpec {
    /// A [`Supervisor`](crate::Supervisor) as a child, or the result of
    /// [`PoolBuilder::supervised`](crate::PoolBuilder::supervised) for a pool, with the defaults:
    /// [`transient`](Self::transient), 3 restarts within a minute, and once these are used up its
    /// supervisor stops; five seconds to stop.
    pub fn new(child: impl Into<Self>) -> Self {
        child.into()
    }

    pub(crate) fn plain(child: Arc<dyn Child>) -> Self {
        let rules = Rules {
            policy: RestartPolicy::default(),
            restarts: Restarts::default(),
            on_exceeded: OnExceeded::default(),
            significant: false,
        };
        Self { child, stop: Stop::within(DEFAULT_STOP), rules }
    }

    /// It is restarted however it ended.
    pub fn permanent(self) -> Self {
        self.policy(RestartPolicy::Permanent)
    }

    /// It is restarted if it ended abnormally. The default.
    pub fn transient(self) -> Self {
        self.policy(RestartPolicy::Transient)
    }

    /// It is never restarted, not even together with another child.
    pub fn temporary(self) -> Self {
        self.policy(RestartPolicy::Temporary)
    }

    /// When it is restarted.
    pub fn policy(mut self, policy: RestartPolicy) -> Self {
        self.rules.policy = policy;
        self
    }

    /// How often it is restarted, and how soon. Only its own failures count, and only those of a
    /// child that was up: a failed start is retried with the same backoff, forever.
    pub fn restarts(mut self, restarts: Restarts) -> Self {
        self.rules.restarts = restarts;
        self
    }

    /// The consequence if it fails more often than that. [`OnExceeded::StopSupervisor`] by default.
    pub fn on_exceeded(mut self, what: OnExceeded) -> Self {
        self.rules.on_exceeded = what;
        self
    }

    /// Its end is the end of its supervisor, which stops its other children: the end of a child
    /// that its policy does not restart, not that of a removed or disabled one.
    pub fn significant(mut self) -> Self {
        self.rules.significant = true;
        self
    }

    /// How it is stopped. When it is restarted together with another child, it has this long to
    /// release the message in hand; after [`Stop::Now`], as long as it takes.
    pub fn stop(mut self, how: Stop) -> Self {
        self.stop = how;
        self
    }
}

impl_debug!([] ChildSpec, |this| name: this.child.name(), stop: this.stop, rules: this.rules);
