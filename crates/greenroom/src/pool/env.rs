//! The runtime of a pool, and its random numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::{runtime::Handle, task::JoinHandle};

use super::builder::threads::Threads;
use crate::address::vtable::BoxFuture;

/// The runtime of a pool, and its random numbers.
pub(crate) struct Env {
    /// The runtime of the pool's tasks.
    pub(crate) runtime: Handle,
    /// Threads of its own, if it has any.
    _threads: Option<Threads>,
    /// The state of its random numbers.
    pub(crate) chance: AtomicU64,
}

impl Env {
    pub(super) fn new(runtime: Handle, threads: Option<Threads>, seed: u64) -> Self {
        Self { runtime, _threads: threads, chance: AtomicU64::new(seed) }
    }

    /// Runs a task.
    pub(crate) fn spawn(&self, task: BoxFuture<'static, ()>) -> JoinHandle<()> {
        self.runtime.spawn(task)
    }

    /// A random number between 0 and 1, for jitter (Steele, Lea, Flood: SplitMix64, OOPSLA 2014).
    pub(crate) fn chance(&self) -> f64 {
        let mut z = self.chance.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
