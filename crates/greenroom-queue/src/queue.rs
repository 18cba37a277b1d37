//! Queues of messages, their bounds, and the workers that are woken for them.

use std::sync::atomic::AtomicU64;

use super::{
    backlog::KeyBounds,
    credit_map::CreditMap,
    payload::Payload,
    permits::Permits,
    shard::{Shard, Turns},
    wake::Wake,
};

/// Unused permits of all shards together are at most this part of the capacity, so that they need
/// not be searched for while the pool is far from full.
const CREDIT_SHARE: usize = 8;

/// More would not make a permit noticeably cheaper.
const MAX_CREDIT: usize = 64;

/// How many permits a shard takes at once.
pub fn credit_for(capacity: usize, shards: usize) -> u64 {
    (capacity / shards / CREDIT_SHARE).clamp(1, MAX_CREDIT) as u64
}

/// Queues of messages, their bounds, and the workers that are woken for them.
pub struct WorkQueue<T: Payload, K> {
    /// One or several: by key, or by sender.
    pub shards: Vec<Shard<T, K>>,
    /// The bound on messages that are accepted and not started.
    pub permits: Permits,
    /// How many permits a shard takes at once. Changes with the capacity.
    pub credit: AtomicU64,
    /// Which shards may have some.
    pub credit_map: CreditMap,
    /// Which shards are ready, and which workers lie idle.
    pub wake: Wake,
}

impl<T: Payload, K> WorkQueue<T, K> {
    /// So many shards, for so many messages. At most `awake_limit` of the workers are awake at
    /// the same time.
    pub fn new(
        shards: usize,
        keyed: bool,
        bounds: KeyBounds,
        capacity: usize,
        workers: usize,
        awake_limit: usize,
    ) -> Self {
        let turns = if keyed { Turns::OF_KEYS } else { Turns::OF_A_SENDER };
        let turns = turns.of_messages_of(size_of::<T::Message>());
        let mut all = Vec::with_capacity(shards);
        for _ in 0..shards {
            all.push(Shard::new(turns, bounds));
        }
        Self {
            shards: all,
            permits: Permits::new(capacity),
            credit: AtomicU64::new(credit_for(capacity, shards)),
            credit_map: CreditMap::new(),
            wake: Wake::new(workers, awake_limit),
        }
    }
}
