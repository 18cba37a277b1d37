//! What a coordinator may say of its pool before there is one.

use std::{fmt, hash::Hash, ops::RangeInclusive};

use crate::{Actor, Overflow, PoolBuilder};

/// The options of a pool that its coordinator may set when it starts. Options that it does not set
/// stay as the builder has them.
///
/// ```
/// # use greenroom::{PoolAdmin, coordinator::Coordinator, prelude::*};
/// # struct Clerk; impl Actor for Clerk { type Message = u8; type Reply = u8; type Error = ();
/// # async fn handle(&mut self, page: u8, _: &mut Context<Self>) -> Result<u8, ()> { Ok(page) } }
/// use greenroom::coordinator::Setup;
///
/// struct Boss;
///
/// impl Coordinator<Clerk> for Boss {
///     # type Command = (); type Reply = (); type Error = &'static str;
///     # async fn command(&mut self, _: (), _: &PoolAdmin<Clerk>, _: &mut Context<Self>) -> Result<(), &'static str> { Ok(()) }
///     async fn started(&mut self, setup: &mut Setup<Clerk>) -> Result<(), Self::Error> {
///         setup.workers(4).bounds(1..=8);
///         Ok(())
///     }
///     // ...
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pool = Pool::new(|_slot| Clerk).coordinator(Boss).spawn().await?;
/// assert_eq!(pool.stats().configured, 4);
/// # Ok(()) }
/// ```
pub struct Setup<A: Actor> {
    workers: Option<usize>,
    bounds: Option<RangeInclusive<usize>>,
    mailbox: Option<usize>,
    capacity: Option<usize>,
    overflow: Option<Overflow<A::Message, A::Reply, A::Error>>,
}

impl<A: Actor> Setup<A> {
    pub(super) fn new() -> Self {
        Self { workers: None, bounds: None, mailbox: None, capacity: None, overflow: None }
    }

    /// With how many workers the pool starts; see [`PoolBuilder::workers`].
    pub fn workers(&mut self, workers: usize) -> &mut Self {
        self.workers = Some(workers);
        self
    }

    /// How few and how many workers it may have; see [`PoolBuilder::bounds`].
    pub fn bounds(&mut self, workers: RangeInclusive<usize>) -> &mut Self {
        self.bounds = Some(workers);
        self
    }

    /// How many messages per worker may wait; see [`PoolBuilder::mailbox`].
    pub fn mailbox(&mut self, messages: usize) -> &mut Self {
        self.mailbox = Some(messages);
        self
    }

    /// How many messages may wait in all; see [`PoolBuilder::capacity`].
    pub fn capacity(&mut self, messages: usize) -> &mut Self {
        self.capacity = Some(messages);
        self
    }

    /// The fate of messages for which there is no room; see [`PoolBuilder::overflow`].
    pub fn overflow(&mut self, overflow: Overflow<A::Message, A::Reply, A::Error>) -> &mut Self {
        self.overflow = Some(overflow);
        self
    }

    pub(super) fn apply<K: Hash + Eq + Send + Sync + 'static>(
        self,
        builder: PoolBuilder<A, K>,
    ) -> PoolBuilder<A, K> {
        let builder = set(builder, self.workers, PoolBuilder::workers);
        let builder = set(builder, self.bounds, PoolBuilder::bounds);
        let builder = set(builder, self.mailbox, PoolBuilder::mailbox);
        let builder = set(builder, self.capacity, PoolBuilder::capacity);
        set(builder, self.overflow, PoolBuilder::overflow)
    }
}

/// Sets the value, if there is one.
fn set<B, T>(builder: B, value: Option<T>, with: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => with(builder, value),
        None => builder,
    }
}

impl<A: Actor> fmt::Debug for Setup<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("workers", &self.workers)
            .field("bounds", &self.bounds)
            .field("mailbox", &self.mailbox)
            .field("capacity", &self.capacity)
            .field("overflow", &self.overflow)
            .finish()
    }
}
