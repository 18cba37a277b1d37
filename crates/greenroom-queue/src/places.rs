//! The place of a sender in a queue without keys: the shard that its messages go to.
//!
//! There are often more senders than workers. If two senders on different threads share a shard,
//! they meet there at every message, and the cache lines of both move back and forth: so each
//! sender should have its own shard. Callers wait for their replies and have only one message there
//! at a time: if many callers share a shard, a worker finds many messages at once. So a sender's
//! first message decides. The sender then keeps its place, since its messages must stay in one
//! line.

use std::sync::atomic::{AtomicU32, Ordering};

/// Shards for each worker. A pool of batches has one per worker: a batch is filled from one shard,
/// so as many senders as possible should share it.
const SHARDS_PER_WORKER: usize = 4;

/// The most shards: a map has a bit for each.
pub const SHARDS: usize = 64;

/// Shards by key. Every sender fills all of them, so their messages should fit into a core's caches
/// together; and a slow key should affect few others.
pub const KEYED_SHARDS: usize = 32;

/// No sender has this place.
pub const NOWHERE: u32 = u32::MAX;

/// How a sender starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstMessage {
    /// With a message whose sender does not wait for a reply.
    Sends,
    /// With a message whose sender waits for the reply.
    Calls,
}

/// Gives senders their places.
pub struct Places {
    /// Senders that started with a message whose reply is not waited for.
    senders: AtomicU32,
    /// Senders that started with a call.
    callers: AtomicU32,
    /// The number of shards for callers, a power of two.
    for_callers: u32,
}

impl Places {
    /// The places of a pool that starts with this many workers.
    pub fn new(workers: usize) -> Self {
        let for_callers = workers.next_power_of_two().min(SHARDS) as u32;
        Self { senders: AtomicU32::new(0), callers: AtomicU32::new(0), for_callers }
    }

    /// The number of shards: a power of two. One worker has one shard, so that messages are handled
    /// in the order in which they were sent, by one sender and by all.
    pub fn shards(workers: usize, in_batches: bool) -> usize {
        let each = if in_batches { 1 } else { SHARDS_PER_WORKER };
        match workers {
            1 => 1,
            _ => workers.saturating_mul(each).min(SHARDS).next_power_of_two(),
        }
    }

    /// The place of another sender. Its last bits select the shard.
    #[cold]
    pub fn next(&self, beginning: FirstMessage) -> u32 {
        match beginning {
            FirstMessage::Sends => self.senders.fetch_add(1, Ordering::Relaxed) % NOWHERE,
            FirstMessage::Calls => self.callers.fetch_add(1, Ordering::Relaxed) % self.for_callers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards_of(beginning: FirstMessage, workers: usize, senders: usize) -> Vec<usize> {
        let places = Places::new(workers);
        let shards = Places::shards(workers, false);
        (0..senders).map(|_| places.next(beginning) as usize & (shards - 1)).collect()
    }

    #[test]
    fn there_are_several_shards_for_each_worker_but_of_one() {
        let workers = [1, 2, 3, 4, 8, 15, 16, 17, 1_000, usize::MAX];
        let shards = workers.map(|workers| Places::shards(workers, false));
        assert_eq!(shards, [1, 8, 16, 16, 32, 64, 64, 64, 64, 64]);
        let of_batches = workers.map(|workers| Places::shards(workers, true));
        assert_eq!(of_batches, [1, 2, 4, 4, 8, 16, 16, 32, 64, 64]);
    }

    #[test]
    fn senders_have_a_shard_each_as_long_as_there_are_some() {
        assert_eq!(shards_of(FirstMessage::Sends, 2, 10), [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        assert_eq!(shards_of(FirstMessage::Sends, 1, 3), [0; 3]);
    }

    #[test]
    fn callers_share_as_many_as_there_are_workers() {
        assert_eq!(shards_of(FirstMessage::Calls, 2, 5), [0, 1, 0, 1, 0]);
        assert_eq!(shards_of(FirstMessage::Calls, 3, 5), [0, 1, 2, 3, 0]);
        assert_eq!(shards_of(FirstMessage::Calls, 1, 2), [0; 2]);
        let of_many = shards_of(FirstMessage::Calls, 1_000, 65);
        assert!(of_many[..64].iter().copied().eq(0..64) && of_many[64] == 0);
    }

    #[test]
    fn nobody_is_nowhere() {
        let places = Places::new(4);
        places.senders.store(NOWHERE - 1, Ordering::Relaxed);
        assert_eq!([(); 3].map(|()| places.next(FirstMessage::Sends)), [NOWHERE - 1, 0, 0]);
    }
}
