//! A pool with a keeper: an actor of its own that looks after it.

use std::hash::Hash;

use super::PoolBuilder;
use crate::{
    Actor, PoolAdmin,
    keeper::{KeptBuilder, PoolNotice},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> PoolBuilder<A, K> {
    /// Gives the pool its own actor, which looks after it: its [keeper](crate::keeper). It starts
    /// before the first worker, is notified of events in the pool, and ends after the last worker.
    /// `make` gets the administration handle of the pool. Call this last: set everything else
    /// before.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
    /// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
    /// use greenroom::{PoolAdmin, keeper::PoolNotice, pool::AdminError};
    ///
    /// enum Order {
    ///     Hire(usize),
    ///     Notice(PoolNotice),
    /// }
    ///
    /// impl From<PoolNotice> for Order {
    ///     fn from(notice: PoolNotice) -> Self {
    ///         Self::Notice(notice)
    ///     }
    /// }
    ///
    /// /// Hires as many clerks as it is told to, and one whenever a message finds no room.
    /// struct Boss {
    ///     office: PoolAdmin<Clerk>,
    /// }
    ///
    /// impl Actor for Boss {
    ///     type Message = Order;
    ///     type Reply = usize;
    ///     type Error = AdminError;
    ///
    ///     async fn handle(
    ///         &mut self,
    ///         order: Order,
    ///         _cx: &mut Context<Self>,
    ///     ) -> Result<usize, AdminError> {
    ///         let clerks = match order {
    ///             Order::Hire(clerks) => clerks,
    ///             Order::Notice(PoolNotice::Saturated) => 1,
    ///             Order::Notice(_) => return Ok(0),
    ///         };
    ///         Ok(self.office.add(clerks)?.size())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let office = Pool::new(|_slot| Clerk).workers(2).keeper(|office| Boss { office });
    /// let (office, boss) = office.spawn().await?;
    /// assert_eq!(boss.call(Order::Hire(3)).await?, 5);
    /// assert_eq!(office.call(7).await, Ok(7)); // messages go to the workers
    /// # Ok(()) }
    /// ```
    pub fn keeper<B: Actor<Message: From<PoolNotice>>>(
        self,
        make: impl FnOnce(PoolAdmin<A>) -> B + Send + 'static,
    ) -> KeptBuilder<A, B, K> {
        KeptBuilder::new(self, Box::new(make))
    }
}
