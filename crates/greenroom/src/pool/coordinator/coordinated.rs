//! A running pool with a coordinator.

use std::{convert::Infallible, fmt, ops::Deref, sync::Arc};

use super::{Coordinator, driver::CoordinatorDriver};
use crate::{
    Actor, Address, Pool, Stop, StopReport,
    inspect::{Items, Value},
    pool::{core::Core, handoff::reentrancy::slot_at_work},
};

/// The address of a coordinator.
pub(super) type Commands<A, C> = Address<
    <C as Coordinator<A>>::Command,
    <C as Coordinator<A>>::Reply,
    <C as Coordinator<A>>::Error,
>;

/// A running pool, to which it dereferences, with its coordinator.
///
/// Dropping it and all addresses of the pool handles the queued messages, then stops the workers,
/// then the coordinator.
pub struct CoordinatedPool<A: Actor, C: Coordinator<A>> {
    pool: Pool<A>,
    commands: Commands<A, C>,
    driver: Arc<Core<CoordinatorDriver<A, C>, Infallible>>,
}

impl<A: Actor, C: Coordinator<A>> CoordinatedPool<A, C> {
    pub(super) fn new(
        pool: Pool<A>,
        driver: Arc<Core<CoordinatorDriver<A, C>, Infallible>>,
    ) -> Self {
        Self { pool, commands: Address::new(driver.clone()), driver }
    }

    /// The address of the coordinator. It does not keep the pool running.
    pub fn commands(&self) -> &Commands<A, C> {
        &self.commands
    }

    /// The last values that the coordinator has published, in the order of their keys. The
    /// coordinator is not asked, so this works even while it is busy.
    pub fn published(&self, wanted: &Items) -> Vec<(Arc<str>, Value)> {
        self.driver.membership.slots.at(0).published.snapshot(wanted)
    }

    /// Stops the pool, as [`Pool::stop`] does, then the coordinator, and returns when both have
    /// ended: five seconds after the pool at the latest. Called by the coordinator itself, it does
    /// not wait for the end of its caller.
    ///
    /// # Cancel safety
    /// As [`Pool::stop`].
    pub async fn stop(&self, how: Stop) -> StopReport<A::Message> {
        let report = self.pool.stop(how).await;
        if slot_at_work(self.driver.identity()).is_none() {
            self.driver.lifecycle.life.end_of().await;
        }
        report
    }
}

impl<A: Actor, C: Coordinator<A>> Deref for CoordinatedPool<A, C> {
    type Target = Pool<A>;

    fn deref(&self) -> &Self::Target {
        &self.pool
    }
}

impl<A: Actor, C: Coordinator<A>> fmt::Debug for CoordinatedPool<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatedPool").field("pool", &self.pool).finish_non_exhaustive()
    }
}
