//! What has to be so while the pool is played, and at the end.

use std::collections::BTreeMap;

use greenroom_queue::{lanes::LaneState, sync::Ordering};

use super::{
    PoolOf,
    message::{Keyed, Numbers},
};
use crate::{checker::JoinHandle, pool::pool_payload::ShardOf};

impl<K: Keyed> PoolOf<K> {
    /// Messages that workers have settled, in a pool that is stopped.
    pub(crate) fn settled(&self) -> u64 {
        let slots = self.core.frame.membership.slots.iter();
        slots.map(|slot_state| slot_state.settled.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn has_handled(&self, number: u32) -> bool {
        self.ledger().handled.contains(&number)
    }

    /// What has been handled so far.
    pub(crate) fn handled(&self) -> Vec<u32> {
        self.ledger().handled.iter().copied().collect()
    }

    /// No key has more messages than it may, here and now. Those of parked keys have another bound.
    pub(crate) fn check_bounds(&self) {
        for shard in &self.core.queue.shards {
            let mut lines = BTreeMap::<u32, usize>::new();
            let outbox = shard.outbox.lock();
            let inbox = shard.inbox.lock();
            let queued = outbox.queue.iter().chain(inbox.queue.iter()).chain(inbox.urgent.iter());
            for entry in queued.filter(|entry| entry.key.is_some()) {
                *lines.entry(entry.hash).or_default() += 1;
            }
            for lane in outbox.lanes.iter() {
                *lines.entry(lane.id.hash).or_default() += lane.len() - lane.retried();
            }
            for lane in outbox.lanes.iter().filter(|lane| lane.state == LaneState::Parked) {
                lines.remove(&lane.id.hash);
            }
            drop((outbox, inbox));
            let most = lines.into_values().max().unwrap_or(0);
            assert!(most <= self.plan.bounds.waiting, "{most} messages of a key");
        }
    }

    /// Nothing is counted that is not there, and nobody waits.
    pub(crate) fn check_counts(&self) {
        for (index, shard) in self.core.queue.shards.iter().enumerate() {
            for hash in 1..self.plan.hashes {
                let room = self.core.room_behind(index, hash);
                assert!(room.is_none_or(|room| room == self.plan.bounds.waiting), "{room:?}");
            }
            let outbox = shard.outbox.lock();
            assert!(outbox.backlog.as_ref().is_none_or(|backlog| backlog.is_needless(0)));
        }
    }

    /// As `finish`, where a message has ended the pool: what was not started lies where it was.
    pub(crate) fn finish_early(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        assert!(self.ledger().barred.is_some(), "it has ended");
        let of = |shard: &ShardOf<Numbers, K>| {
            let outbox = shard.outbox.lock();
            assert!(outbox.token.is_none(), "whoever drained it has let go");
            outbox.queued() + shard.inbox.lock().queued()
        };
        let left: usize = self.core.queue.shards.iter().map(of).sum();
        assert_eq!(self.ledger().done() + left, self.expected, "nothing is lost");
    }

    pub(crate) fn finish(&self, threads: impl IntoIterator<Item = JoinHandle<()>>) {
        threads.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        assert_eq!(self.ledger().done(), self.expected, "nothing is lost");
        assert_eq!(self.core.queue.wake.awake(), 0, "whoever was awake has left");
        for shard in &self.core.queue.shards {
            let outbox = shard.outbox.lock();
            assert_eq!(outbox.queued() + shard.inbox.lock().queued(), 0);
        }
        assert!(!self.core.queue.permits.is_starved(), "nobody waits");
    }
}
