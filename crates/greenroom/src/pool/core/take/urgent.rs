//! Taking urgent messages.

use super::TakenMessage;
use crate::{
    Actor,
    pool::core::{Core, Key, OutboxOf, Queued},
};

impl<A: Actor, K: Key> Core<A, K> {
    pub(crate) fn pop_urgent_head(
        &self,
        index: usize,
        outbox: &mut OutboxOf<A, K>,
    ) -> Option<Queued<A, K>> {
        let entry = self.pop_urgent(index, outbox.has_urgent_ready())?;
        outbox.taken = outbox.taken.wrapping_add(1);
        Some(entry)
    }

    /// The next urgent message of a shard. In a keyed pool, for the holder of its token, which says
    /// whether there are `more` in ready lanes.
    pub(crate) fn pop_urgent(&self, index: usize, more: bool) -> Option<Queued<A, K>> {
        let mut inbox = self.queue.shards[index].inbox.lock();
        let entry = inbox.pop_urgent();
        if !inbox.has_urgent() && !more {
            self.queue.wake.clear_urgent(index);
        }
        entry
    }

    /// Takes an urgent message from a shard without keys.
    pub(crate) fn take_urgent(&self) -> Option<Queued<A, K>> {
        loop {
            let urged = self.queue.wake.urgent_shards();
            if urged == 0 {
                return None;
            }
            if let Some(entry) = self.pop_urgent(urged.trailing_zeros() as usize, false) {
                return Some(entry);
            }
        }
    }

    /// Goes to a keyed shard with urgent messages that no worker drains and that is not `but`.
    pub(crate) fn take_from_urgent_shard(
        &self,
        worker: usize,
        but: Option<usize>,
    ) -> TakenMessage<A, K> {
        let but = but.map_or(0, |index| 1_u64 << index);
        let mut urged = self.queue.wake.urgent_shards() & !but;
        while urged != 0 {
            let index = urged.trailing_zeros() as usize;
            urged &= urged - 1;
            if self.queue.wake.claim_this(index)
                && let Some(work) = self.take_from(index, worker)
            {
                return Some(work);
            }
        }
        None
    }

    /// A lane has gone that may have been the last with an urgent message.
    pub(crate) fn clear_urgent_if_last(&self, index: usize, outbox: &mut OutboxOf<A, K>) {
        if !self.queue.wake.has_urgent_at(index) || outbox.has_urgent_ready() {
            return;
        }
        let inbox = self.queue.shards[index].inbox.lock();
        if !inbox.has_urgent() {
            self.queue.wake.clear_urgent(index);
        }
    }
}
