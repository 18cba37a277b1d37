//! What a handler may know of where it runs.

use std::{marker::PhantomData, sync::Arc};

/// Where a handler runs. Lent to each call of a handler.
#[derive(Debug)]
pub struct Context<A> {
    pool: Arc<str>,
    slot: usize,
    restarts: u32,
    actor: PhantomData<fn(A)>,
}

impl<A> Context<A> {
    pub(crate) fn new(pool: Arc<str>, slot: usize) -> Self {
        Self { pool, slot, restarts: 0, actor: PhantomData }
    }

    pub(crate) fn restarted(&mut self) {
        self.restarts += 1;
    }

    /// The name of the pool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// The worker's slot: its index in the pool, which outlives restarts.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The worker's name, `<pool>-<slot>`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.pool, self.slot)
    }

    /// How often the actor in this slot has been restarted.
    pub fn restarts(&self) -> u32 {
        self.restarts
    }
}
