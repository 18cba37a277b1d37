//! A call through a permit or a service is queued before its reply is awaited. So the waiter
//! is known when the call is first polled: the worker, or a task that was handed the call and
//! may well wait.

use std::sync::Arc;

use super::reentrancy::{ReentrancyGuard, Reentrant, slot_at_work};
use crate::any_address::Erased;

/// A call whose message a worker of the pool queued before it was known which task would wait for
/// the reply: that worker, or one to which it hands the call.
pub(crate) struct OwnCall {
    vtable: Arc<dyn Erased>,
    pool: usize,
    slot: usize,
    /// The message is not started before this worker returns.
    blocked: bool,
}

impl OwnCall {
    /// A call of the worker that is polled on this thread, if it is one of this pool.
    pub(crate) fn of(
        vtable: Arc<dyn Erased>,
        pool: usize,
        blocked: impl FnOnce(usize) -> bool,
    ) -> Option<Self> {
        let slot = slot_at_work(pool)?;
        Some(Self { vtable, pool, slot, blocked: blocked(slot) })
    }

    /// The task that is polled now waits for the reply. Refused if that is the worker, and no
    /// worker could answer.
    pub(crate) fn enter(self) -> Result<Option<ReentrancyGuard>, Reentrant> {
        if slot_at_work(self.pool) != Some(self.slot) {
            return Ok(None);
        }
        if self.blocked { Err(Reentrant) } else { self.vtable.enter_any_call() }
    }
}
