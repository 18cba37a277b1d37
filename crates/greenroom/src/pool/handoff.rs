//! Calls that skip the queue.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::{hatch::Hatch, occupied::OwnCalls, seats::Seats};
use crate::Actor;

/// The meeting point of a worker and its callers.
pub(crate) type HatchOf<A> = Hatch<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// Calls that skip the queue.
pub(crate) struct Handoff<A: Actor> {
    /// The hatches of single workers, in a pool that uses them.
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

    /// The hatch of this worker.
    pub(crate) fn hatch(&self, worker: usize) -> &Arc<HatchOf<A>> {
        self.hatches.at(worker).get_or_init(|| Arc::new(Hatch::new()))
    }

    /// Every hatch at which a caller may wait for a worker that has been woken.
    pub(crate) fn hatches_of_waiters(&self) -> impl Iterator<Item = &HatchOf<A>> {
        let hands = self.hands.load(Ordering::Relaxed);
        let hatches = hands.then(|| self.hatches.iter()).into_iter().flatten();
        hatches.filter_map(|hatch| hatch.get().map(|hatch| &**hatch))
    }
}
