//! For how long the oldest message of a pool has waited.

use std::{hash::Hash, time::Duration};

use greenroom_queue::{entry::first, stamp::Stamp};

use super::Core;
use crate::Actor;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// How long the oldest waiting message has waited. Messages that wait for another attempt do
    /// not count, nor does the time before a message's last attempt.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        let mut oldest = self.oldest_handed();
        for shard in &self.queue.shards {
            let outbox = shard.outbox.lock();
            let inbox = shard.inbox.lock();
            oldest = Stamp::earliest(&[
                oldest,
                first(outbox.queue.iter()),
                outbox.lanes.oldest(),
                first(inbox.queue.iter()),
                first(inbox.urgent.iter()),
            ]);
        }
        for slot in 0..self.membership.mailboxes.len() {
            if let Some(mailbox) = self.mailbox_if_any(slot) {
                oldest = Stamp::earliest(&[oldest, mailbox.oldest()]);
            }
        }
        let held = first(self.routing.held().iter());
        let oldest = Stamp::earliest(&[oldest, held])?;
        Some(oldest.age(self.telemetry.coarse.real()))
    }
}
