//! The notices that a keeper gets about its pool.

use crate::ExitReason;

/// An event in the pool of a keeper. Slots are numbered from 0, as in
/// [`Context::slot`](crate::Context::slot).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PoolNotice {
    /// A worker handles messages: for the first time, or again.
    WorkerUp {
        /// Its slot.
        slot: usize,
    },
    /// A worker that was up is down, because it has died or left. If it is restarted, it is up
    /// again later. Workers that end with their pool are not reported one by one.
    WorkerDown {
        /// Its slot.
        slot: usize,
        /// The reason.
        reason: ExitReason,
    },
    /// A message found no room. Reported at most every 100 ms.
    Saturated,
    /// The pool has ended, and the keeper is about to.
    Stopped {
        /// The reason.
        reason: ExitReason,
    },
    /// The keeper has been too slow: this many earlier notices are lost.
    Lagged(u64),
}
