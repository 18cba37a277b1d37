//! Calls that skip the queue.

use std::sync::{Arc, OnceLock, atomic::AtomicBool};

use super::{hatch::Hatch, occupied::OwnCalls, seats::Seats};
use crate::Actor;

/// Where a worker and its callers meet.
pub(crate) type HatchOf<A> = Hatch<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// Calls that skip the queue.
pub(crate) struct Handoff<A: Actor> {
    /// Where callers give single workers a message, in a pool where they may.
    pub(crate) hatches: Seats<OnceLock<Arc<HatchOf<A>>>>,
    /// A caller has given a message to a worker and had it woken.
    pub(crate) hands: AtomicBool,
    /// Workers that wait for their own pool.
    pub(crate) calls: OwnCalls,
}

impl<A: Actor> Handoff<A> {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            hatches: Seats::new(workers),
            hands: AtomicBool::new(false),
            calls: OwnCalls::default(),
        }
    }
}
