//! Keys that stick to their workers.

use std::hash::Hash;

use super::PoolBuilder;
use crate::{
    Actor, SpawnError,
    pool::{
        core::assign::ByTable,
        sticky::{DEFAULT_SLOTS, MAX_SLOTS, StickyBy, Stuck},
    },
    size::check_range,
};

impl<A: Actor> PoolBuilder<A> {
    /// Gives all messages of a key to the same worker, as long as the number of workers does not
    /// change: for workers that keep state for each of their keys, such as a cache or a connection.
    /// Messages of one key and class are handled in the order in which they were accepted, even
    /// while workers join and leave; see [`sticky`](crate::pool::sticky).
    ///
    /// Keys of one worker wait for one another, by design: one slow message stops all keys of its
    /// worker, and so does one that waits for a retry. If you only need order, use
    /// [`ordered_by`](Self::ordered_by), with which any free worker takes the next key.
    ///
    /// The function runs in the sender, before the message is accepted. A sender waits for room at
    /// the worker that has the key. Messages sent to a worker by its own address are not part of
    /// the order. Replaces a [policy](Self::dispatch) that was set before.
    ///
    /// ```
    /// # use greenroom::prelude::*;
    /// use std::collections::HashMap;
    ///
    /// /// Counts the orders of its customers: no other worker has any of them.
    /// #[derive(Default)]
    /// struct Desk(HashMap<u64, u32>);
    ///
    /// impl Actor for Desk {
    ///     type Message = u64;
    ///     type Reply = u32;
    ///     type Error = std::convert::Infallible;
    ///
    ///     async fn handle(&mut self, customer: u64, _: &mut Context<Self>) -> Result<u32, Self::Error> {
    ///         let orders = self.0.entry(customer).or_default();
    ///         *orders += 1;
    ///         Ok(*orders)
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let desks = Pool::new(|_slot| Desk::default()).workers(4).sticky_by(|customer: &u64| *customer).spawn().await?;
    /// assert_eq!((desks.call(17).await?, desks.call(18).await?, desks.call(17).await?), (1, 1, 2));
    /// # Ok(()) }
    /// ```
    pub fn sticky_by<K: Hash + Eq + Send + Sync + 'static>(
        self,
        key: impl Fn(&A::Message) -> K + Send + Sync + 'static,
    ) -> Self {
        self.sticky_by_opt(move |message| Some(key(message)))
    }

    /// Like [`sticky_by`](Self::sticky_by), if some messages have no key: those go to any worker,
    /// in any order.
    pub fn sticky_by_opt<K: Hash + Eq + Send + Sync + 'static>(
        mut self,
        key: impl Fn(&A::Message) -> Option<K> + Send + Sync + 'static,
    ) -> Self {
        self.functions.copy_for_several = None;
        self.functions.dispatch = Some(Box::new(Stuck));
        self.functions.sticky = Some(StickyBy::new(key));
        self.push = Some(Box::new(ByTable));
        self
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> PoolBuilder<A, K> {
    /// How many table slots the keys of a [sticky](Self::sticky_by) pool are hashed onto: a power
    /// of two up to 1,048,576, and at least the initial number of workers; 4,096 by default, or
    /// more if needed. With 16 or more for each worker, shares differ by at most a sixteenth. A
    /// table slot moves as a whole, and its messages wait together if it cannot move yet.
    pub fn sticky_table(mut self, slots: usize) -> Self {
        self.config.keys.sticky_table = Some(slots);
        self
    }

    /// The number of table slots, if keys are sticky.
    pub(super) fn checked_table(&self) -> Result<usize, SpawnError> {
        let least = self.config.size.workers.next_power_of_two();
        let slots = self.config.keys.sticky_table.unwrap_or(least.max(DEFAULT_SLOTS));
        let is_size = slots.is_power_of_two() && (least..=MAX_SLOTS).contains(&slots);
        let range = "a power of two, at least as many as workers, 1,048,576 at most";
        check_range(is_size, "sticky table", slots, range).map(|()| slots)
    }
}
