//! The queues and mailboxes of a pool whose gate shuts or opens, and what they have accepted.

use std::sync::atomic::Ordering;

use super::{Core, Key};
use crate::Actor;

impl<A: Actor, K: Key> Core<A, K> {
    /// Under the gate.
    pub(super) fn set_shards_shut(&self, shut: bool) {
        for shard in &self.queue.shards {
            let mut inbox = shard.inbox.lock();
            inbox.closed = shut;
            let unused = if shut { inbox.take_credit() } else { 0 };
            drop(inbox);
            self.queue.permits.return_unused(unused);
        }
    }

    /// What shards and mailboxes have accepted. The count of those that have gone comes last: a
    /// mailbox that goes meanwhile may count twice. Not counted, it would let a stop end early.
    pub(crate) fn accepted(&self) -> u64 {
        let mut accepted = 0;
        for shard in &self.queue.shards {
            accepted += shard.inbox.lock().accepted;
        }
        for slot in 0..self.desks.len() {
            accepted += self.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.accepted());
        }
        accepted + self.frame.telemetry.counters.accepted.load(Ordering::Relaxed)
    }

    /// Those who wait for room are told, under no lock.
    pub(super) fn tell_shut(&self, for_good: bool) {
        self.close_key_lines();
        if let Some(bytes) = &self.settings.derived.bytes {
            bytes.close();
        }
        if for_good {
            for slot in 0..self.desks.len() {
                if let Some(mailbox) = self.mailbox_if_any(slot) {
                    mailbox.shut();
                }
            }
        }
    }
}
