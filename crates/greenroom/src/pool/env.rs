//! The runtime of a pool, and its random numbers.

use tokio::{runtime::Handle, task::JoinHandle};

use super::builder::threads::Threads;
use crate::{address::vtable::BoxFuture, chance::Chance};

/// The runtime of a pool, and its random numbers.
pub(crate) struct Env {
    /// The runtime of the pool's tasks.
    pub(crate) runtime: Handle,
    /// Threads of its own, if it has any.
    _threads: Option<Threads>,
    /// The state of its random numbers.
    pub(crate) chance: Chance,
}

impl Env {
    pub(super) fn new(runtime: Handle, threads: Option<Threads>, seed: u64) -> Self {
        Self { runtime, _threads: threads, chance: Chance::seeded(seed) }
    }

    /// Runs a task.
    pub(crate) fn spawn(&self, task: BoxFuture<'static, ()>) -> JoinHandle<()> {
        self.runtime.spawn(task)
    }
}
