//! The queues and mailboxes of a pool whose gate shuts or opens, and their accepted messages.

use std::sync::atomic::Ordering;

use super::{Core, Key, backlog::close_key_lines};
use crate::Actor;

/// Call it under the gate.
pub(super) fn set_shards_shut<A: Actor, K: Key>(core: &Core<A, K>, shut: bool) {
    for shard in &core.queue.shards {
        let mut inbox = shard.inbox.lock();
        inbox.closed = shut;
        let unused = if shut { inbox.take_credit() } else { 0 };
        drop(inbox);
        core.queue.permits.return_unused(unused);
    }
}

/// The number of messages that shards and mailboxes have accepted. The count of those that have
/// gone comes last: a mailbox that goes in the meantime may count twice. If it did not count at
/// all, a stop could end early.
pub(crate) fn count_accepted<A: Actor, K: Key>(core: &Core<A, K>) -> u64 {
    let mut accepted = 0;
    for shard in &core.queue.shards {
        accepted += shard.inbox.lock().accepted;
    }
    for slot in 0..core.desks.len() {
        accepted += core.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.accepted());
    }
    accepted + core.frame.telemetry.counters.accepted.load(Ordering::Relaxed)
}

/// Notifies those that wait for room, under no lock.
pub(super) fn tell_shut<A: Actor, K: Key>(core: &Core<A, K>, for_good: bool) {
    close_key_lines(core);
    if let Some(bytes) = &core.settings.derived.bytes {
        bytes.close();
    }
    if for_good {
        for slot in 0..core.desks.len() {
            if let Some(mailbox) = core.mailbox_if_any(slot) {
                mailbox.shut();
            }
        }
    }
}
