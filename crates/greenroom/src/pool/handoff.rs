//! Calls that skip the queue.

pub(crate) mod own_call;
pub(crate) mod pool_exchange;
pub(crate) mod reentrancy;
pub(crate) mod wait;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use greenroom_queue::per_slot::PerSlot;

use crate::Actor;
use pool_exchange::PoolHandoffSlot;
use reentrancy::OwnCalls;

/// That of a pool of these actors.
pub(crate) type HandoffSlotOf<A> =
    PoolHandoffSlot<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// Calls that skip the queue.
pub(crate) struct Handoff<A: Actor> {
    /// The handoff slots of single workers, in a pool that uses them.
    pub(crate) slots: PerSlot<OnceLock<Arc<HandoffSlotOf<A>>>>,
    /// A caller has given a message to a worker and had it woken.
    pub(crate) hands: AtomicBool,
    /// Workers that wait for their own pool.
    pub(crate) calls: OwnCalls,
}

impl<A: Actor> Handoff<A> {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            slots: PerSlot::new(workers),
            hands: AtomicBool::new(false),
            calls: OwnCalls::default(),
        }
    }

    /// The handoff slot of this worker.
    pub(crate) fn slot(&self, worker: usize) -> &Arc<HandoffSlotOf<A>> {
        self.slots.at(worker).get_or_init(|| Arc::new(PoolHandoffSlot::new()))
    }

    /// Every handoff slot at which a caller may wait for a worker that has been woken.
    pub(crate) fn slots_of_waiters(&self) -> impl Iterator<Item = &HandoffSlotOf<A>> {
        let slots = if self.hands.load(Ordering::Relaxed) { self.slots.len() } else { 0 };
        (0..slots).filter_map(|worker| self.slots.at(worker).get().map(|slot| &**slot))
    }
}
