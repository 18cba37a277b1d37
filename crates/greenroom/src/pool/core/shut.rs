//! The queues and mailboxes of a pool whose gate shuts or opens.

use std::hash::Hash;

use super::Core;
use crate::Actor;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
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

    /// Those who wait for room are told, under no lock.
    pub(super) fn tell_shut(&self, for_good: bool) {
        self.close_key_lines();
        if let Some(bytes) = &self.settings.derived.bytes {
            bytes.close();
        }
        if for_good {
            for cell in self.mailboxes.iter() {
                let mailbox = cell.lock().clone();
                if let Some(mailbox) = mailbox {
                    mailbox.shut();
                }
            }
        }
    }
}
