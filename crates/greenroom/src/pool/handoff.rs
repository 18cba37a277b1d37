//! Calls that skip the queue.

pub(crate) mod own_call;
pub(crate) mod pool_exchange;
pub(crate) mod reentrancy;
pub(crate) mod wait;

use std::sync::atomic::AtomicBool;

use crate::Actor;
use pool_exchange::PoolHandoffSlot;
use reentrancy::OwnCalls;

/// The handoff slot of a pool with these actors.
pub(crate) type HandoffSlotOf<A> =
    PoolHandoffSlot<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// Calls that skip the queue.
#[derive(Default)]
pub(crate) struct Handoff {
    /// A caller has given a message to a worker and had it woken.
    pub(crate) hands: AtomicBool,
    /// Workers that wait for their own pool.
    pub(crate) calls: OwnCalls,
}
