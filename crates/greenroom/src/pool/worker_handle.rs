//! A worker of a pool, with an address of its own.

use std::{ops::Deref, sync::Arc};

use crate::{Address, ExitReason, address::vtable::SenderVtable, inspect::WorkerStatus};

/// A worker of a pool and its own address. A message sent there is for this worker: it waits in the
/// worker's own mailbox, within the bounds of the mailbox and of the pool, and goes to another
/// worker only if this one leaves or is disabled. In a pool with order per key it is outside of
/// that order.
///
/// The address belongs to this worker, not to the next one in its slot: once the worker has gone,
/// messages come back.
pub struct Worker<M, R, E> {
    slot: usize,
    pub(super) address: Address<M, R, E>,
}

impl<M, R, E> Worker<M, R, E> {
    /// The worker in this slot, with an address of its own.
    pub(super) fn new(slot: usize, vtable: Arc<dyn SenderVtable<M, R, E>>) -> Self {
        Self { slot, address: Address::new(vtable) }
    }

    /// The worker's place in the pool, which outlives its restarts.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The address that reaches only this worker.
    pub fn address(&self) -> &Address<M, R, E> {
        &self.address
    }
}

impl<M: 'static, R: 'static, E: 'static> Worker<M, R, E> {
    /// Whether it is running or starting at this moment; `None` once it has gone. Lists of workers
    /// differ by that: see [`PoolAdmin`](crate::PoolAdmin#who-is-in-which-list).
    pub fn status(&self) -> Option<WorkerStatus> {
        self.address.vtable().worker_status()
    }

    /// Kills this worker: its handler is dropped at its next await, and its message follows the
    /// failure table ([`Cause::Kill`](crate::failure::Cause::Kill)). Its pool starts another worker
    /// in the slot, as after a panic, within the budget of [`Restarts`](crate::Restarts). Returns
    /// at once. Does nothing if the worker has already gone.
    ///
    /// A worker is not asked and cannot refuse: to let it finish the message in hand, use
    /// [`PoolAdmin::remove_worker`](crate::PoolAdmin::remove_worker). A handler that computes
    /// without an await is dropped only after it returns. The same as `erase().exit(Killed)`
    /// ([`AnyAddress::exit`](crate::AnyAddress::exit)).
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// struct Stuck;
    ///
    /// impl Actor for Stuck {
    ///     type Message = bool;
    ///     type Reply = ();
    ///     type Error = ();
    ///
    ///     async fn handle(&mut self, hangs: bool, _: &mut Context<Self>) -> Result<(), ()> {
    ///         if hangs { std::future::pending().await } else { Ok(()) }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let pool = Pool::new(|_slot| Stuck).workers(1).spawn().await?;
    /// let stuck = pool.address();
    /// let stuck = tokio::spawn(async move { stuck.call(true).await });
    /// # while pool.stats().in_hand == 0 { tokio::task::yield_now().await; }
    /// pool.admin().workers()[0].kill();
    /// assert_eq!(stuck.await?, Err(CallError::Killed));
    /// assert_eq!(pool.call(false).await, Ok(())); // by the next worker in the slot
    /// # Ok(()) }
    /// ```
    pub fn kill(&self) {
        self.address.erase().exit(ExitReason::Killed);
    }
}

impl<M, R, E> Deref for Worker<M, R, E> {
    type Target = Address<M, R, E>;

    fn deref(&self) -> &Self::Target {
        &self.address
    }
}

impl_clone!([M, R, E] Worker<M, R, E>: slot, address);

impl_debug!([M, R, E] Worker<M, R, E>, |this| slot: this.slot);
