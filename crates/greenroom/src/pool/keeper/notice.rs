//! What a keeper hears of its pool.

use crate::ExitReason;

/// Something that has happened in the pool of a keeper. Slots are numbered from 0, as
/// [`Context::slot`](crate::Context::slot) tells.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PoolNotice {
    /// A worker handles messages: for the first time, or again.
    WorkerUp {
        /// Its slot.
        slot: usize,
    },
    /// A worker that was up is down, because it has died or left. If it is started again, it is up
    /// again later. Workers that end with their pool are not told one by one.
    WorkerDown {
        /// Its slot.
        slot: usize,
        /// Why.
        reason: ExitReason,
    },
    /// A message found no room. Told at most every 100 ms.
    Saturated,
    /// The pool has ended, and the keeper is about to.
    Stopped {
        /// Why.
        reason: ExitReason,
    },
    /// The keeper has been too slow: this many earlier notices are lost.
    Lagged(u64),
}
