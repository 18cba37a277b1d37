//! For how long the oldest message of a pool has waited.

use std::{hash::Hash, time::Duration};

use greenroom_queue::entry::first;

use super::Core;
use crate::Actor;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// How long the oldest waiting message has waited. Messages that wait for another attempt do
    /// not count, nor does the time before a message's last attempt.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let shards = self.queue.shards.iter().filter_map(|shard| {
            let outbox = shard.outbox.lock();
            let inbox = shard.inbox.lock();
            let queues = [first(outbox.queue.iter()), first(inbox.queue.iter())];
            let others = [first(inbox.urgent.iter()), outbox.lanes.oldest()];
            let runs = [outbox.queue.first_run(), inbox.queue.first_run()];
            queues.into_iter().chain(runs).chain(others).flatten().min_by_key(|stamp| stamp.nanos())
        });
        let mailboxes = self.membership.mailboxes.iter().filter_map(|cell| cell.lock().clone());
        let mailboxes = mailboxes.filter_map(|mailbox| mailbox.oldest());
        let held = first(self.routing.held().iter());
        let shards = shards.chain(self.oldest_handed());
        let oldest = shards.chain(mailboxes).chain(held).min_by_key(|stamp| stamp.nanos())?;
        Some(oldest.age(self.telemetry.coarse.real()))
    }
}
