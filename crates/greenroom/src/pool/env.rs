//! Where a pool runs, and its random numbers.

use std::sync::atomic::AtomicU64;

use tokio::runtime::Handle;

use super::threads::Threads;

/// Where a pool runs, and its random numbers.
pub(crate) struct Env {
    /// Where the pool's tasks run.
    pub(crate) runtime: Handle,
    /// Threads of its own, where it has some.
    _threads: Option<Threads>,
    /// The state of its random numbers.
    pub(crate) chance: AtomicU64,
}

impl Env {
    pub(super) fn new(runtime: Handle, threads: Option<Threads>, seed: u64) -> Self {
        Self { runtime, _threads: threads, chance: AtomicU64::new(seed) }
    }
}
