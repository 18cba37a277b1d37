//! A limit on the time of a handler.

use std::time::Duration;

use super::{Layer, Next};
use crate::{Actor, Answer, Delivery};

/// Limits how long the handler may take for each message. A handler that takes longer is dropped
/// at its await, and the attempt fails with the error given here, which goes to the failure
/// policy like any other.
///
/// If the handler had not taken the message out of its delivery by then, or the pool keeps a copy
/// (with [`retry`](crate::PoolBuilder::retry)), the message can be attempted again, or is a dead
/// letter with its message. The state of the actor stays as the handler left it at that await. Sync
/// code cannot be interrupted: a handler that computes is dropped when it next waits, and one that
/// returns instead has succeeded.
///
/// Each message costs a look at the clock, and a timer if the handler waits.
#[derive(Debug)]
pub struct Timeout<E> {
    /// The longest that a handler may take.
    limit: Duration,
    /// What an attempt fails with that takes longer.
    error: fn() -> E,
}

impl<E> Timeout<E> {
    /// A limit, and the error of an attempt that takes longer.
    pub const fn new(limit: Duration, error: fn() -> E) -> Self {
        Self { limit, error }
    }
}

impl<E> Clone for Timeout<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Timeout<E> {}

impl<A: Actor> Layer<A> for Timeout<A::Error> {
    async fn receive(
        &mut self,
        delivery: &mut Delivery<A::Message, A::Reply, A::Error>,
        mut next: Next<'_, A>,
    ) -> Result<Answer<A::Reply>, A::Error> {
        let handled = tokio::time::timeout(self.limit, next.run(delivery)).await;
        handled.unwrap_or_else(|_| Err((self.error)()))
    }
}
