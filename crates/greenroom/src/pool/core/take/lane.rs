//! Taking messages from lanes.

use greenroom_queue::{
    discard::discard,
    lanes::{InOwnLane, LaneId, LaneState},
};

use super::{BUDGET, Outboxed, QUOTA, TakenMessage};
use crate::{
    Actor, Class,
    pool::{
        core::{Core, Key},
        worker::in_flight::Source,
    },
};

impl<A: Actor, K: Key> Core<A, K> {
    pub(super) fn take_lane(
        &self,
        index: usize,
        mut outbox: Outboxed<'_, A, K>,
        id: LaneId,
        worker: usize,
    ) -> TakenMessage<A, K> {
        if let Some(lane) = outbox.lanes.get(id) {
            lane.state = LaneState::Running(worker);
        }
        let entry = outbox.pop_lane(id);
        self.note_taken(index, &outbox);
        // Its only message may have made room for another.
        let empty = entry.is_none().then(|| outbox.lanes.close(id));
        self.clear_urgent_if_last(index, &mut outbox);
        let may_drain = outbox.token.is_none();
        let more =
            outbox.has_ready() || (may_drain && self.queue.shards[index].refill(&mut outbox));
        drop(outbox);
        if more {
            self.queue.wake.mark(index);
        }
        discard(empty);
        entry.map(|entry| (Source::Lane { index, id, run: 0 }, entry))
    }

    /// The next message of a lane. If it is empty, and `heir` goes on with the shard, which no
    /// worker drains, the next message there, under the same lock.
    pub(super) fn next_in_lane(
        &self,
        index: usize,
        id: LaneId,
        run: u32,
        heir: Option<usize>,
    ) -> TakenMessage<A, K> {
        let mut outbox = self.queue.shards[index].outbox.lock();
        // Keys of this shard wait for a quota, those of other shards for a turn, as they do
        // behind any shard.
        let others = run + 1 >= QUOTA
            && (outbox.has_ready() || self.queue.shards[index].has_waiting(&outbox))
            || run >= BUDGET && self.queue.wake.any_ready();
        if others {
            drop(outbox);
            self.release_lane(index, id);
            return None;
        }
        let closed = match outbox.pop_or_close(id, true) {
            InOwnLane::Next(entry) => {
                self.note_taken(index, &outbox);
                return Some((Source::Lane { index, id, run: run + 1 }, entry));
            }
            InOwnLane::Stays => {
                drop(outbox);
                self.release_lane(index, id);
                return None;
            }
            InOwnLane::Closed(closed) => closed,
        };
        let is_free = outbox.token.is_none() && !outbox.has_ready() && !self.has_ended();
        let taken = match heir.filter(|_| is_free) {
            Some(worker) => {
                let epoch = outbox.grant(worker);
                self.advance(index, outbox, epoch, 0, Class::Urgent)
            }
            None => {
                drop(outbox);
                None
            }
        };
        if let Some(removed) = closed {
            removed.discard();
        }
        taken
    }
}
