//! A pool with an actor of its own that looks after it.

use std::hash::Hash;

use super::PoolBuilder;
use crate::{
    Actor,
    coordinator::{CoordinatedBuilder, Coordinator},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> PoolBuilder<A, K> {
    /// Gives the pool an actor of its own, which looks after it. See [`Coordinator`]. It comes
    /// last: set everything else before.
    pub fn coordinator<C: Coordinator<A>>(self, coordinator: C) -> CoordinatedBuilder<A, C, K> {
        CoordinatedBuilder::new(self, coordinator)
    }
}
