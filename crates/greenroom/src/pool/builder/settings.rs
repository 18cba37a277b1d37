//! The final settings of a pool.

use greenroom_queue::backlog::KeyBounds;

use super::functions::{FunctionsOf, KeyOf, ShareOf};
use crate::Actor;
use crate::pool::{batch::bytes::BatchBytes, bytes::ByteBound, shares::ShareDesk, worker::Factory};

/// The settings that a pool runs with. All of them are in range.
pub(crate) struct Settings<A: Actor, K> {
    pub(crate) functions: FunctionsOf<A>,
    pub(crate) factory: Factory<A>,
    /// `None` for a pool without order.
    pub(crate) key_of: Option<KeyOf<A::Message, K>>,
    /// Present if messages have shares.
    pub(crate) share_of: Option<ShareOf<A::Message>>,
    /// The shares. Taken out when the pool is made.
    pub(crate) shares: Option<Box<ShareDesk>>,
    pub(crate) derived: Derived<A::Message>,
}

/// Derived values, computed once instead of for each message.
pub(crate) struct Derived<M> {
    pub(crate) capacity: usize,
    /// The number of table slots, if keys are sticky.
    pub(crate) table_slots: usize,
    /// How many messages may wait behind one key.
    pub(crate) key_bounds: KeyBounds,
    /// Present if the bound of one key follows the capacity: the part of it.
    pub(crate) key_share: Option<usize>,
    /// Present if bytes are bounded.
    pub(crate) bytes: Option<Box<ByteBound<M>>>,
    /// Present if a batch is also full by its size.
    pub(crate) batch_bytes: Option<BatchBytes<M>>,
    /// A policy or a sticky table chooses the worker, or bytes are bounded: a message is not simply
    /// queued.
    pub(crate) is_checked: bool,
    /// Copies are made, or `starts_if` is called: a message is not simply started.
    pub(crate) looks_at_start: bool,
    /// Callers may give a worker the message past the queue: it needs only to be handled.
    pub(crate) uses_handoff: bool,
    pub(crate) seed: u64,
}
