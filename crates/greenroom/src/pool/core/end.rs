//! The end of a pool: nothing more is started, and all who wait for that are told.

use std::{hash::Hash, sync::atomic::Ordering};

use super::{Core, Queued};
use crate::{Actor, pool::membership::slot_state::END};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// All is done, or nothing more is to be started: workers end when they look next.
    pub(crate) fn end(&self) {
        // Pairs with the load in `park` of a worker, which is in the idle list by then: it sees
        // the end, or `all` below finds it. Also pairs with the load in `over`, which hears of the
        // end or sees it. Otherwise a worker sleeps for ever, and the stop waits for it.
        self.lifecycle.ended.store(true, Ordering::SeqCst);
        // A worker in the middle of a run looks at its own orders only.
        self.membership.slots.iter().for_each(|slot_state| slot_state.order(END));
        self.queue.wake.all();
        self.clock.notify();
        self.lifecycle.over.notify_waiters();
        self.lifecycle.progress.notify_waiters();
    }

    /// Keeps messages that will not be handled for the stop that takes them.
    pub(super) fn give_back(&self, entries: Vec<Queued<A, K>>) {
        self.telemetry.counters.returned.fetch_add(entries.len() as u64, Ordering::Relaxed);
        let deliveries = entries.into_iter().map(|entry| self.delivery_of(entry)).collect();
        self.lifecycle.left_over.give_back(deliveries);
    }

    /// Resolves once the pool has ended, or the worker of this slot is to leave.
    pub(crate) async fn over(&self, slot: usize) {
        loop {
            let over = self.lifecycle.over.notified();
            // Pairs with the store in `end`, before its `notify_waiters`, of which `over`
            // hears from its making on. Otherwise a worker waits out its backoff in a pool
            // that has ended.
            if self.lifecycle.ended.load(Ordering::SeqCst)
                || self.membership.slots.at(slot).is_dismissed()
            {
                return;
            }
            over.await;
        }
    }
}
