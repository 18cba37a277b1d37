//! The gate of a pool: whether it accepts messages. It shuts when the last worker goes, and opens
//! for the next one; a stop shuts it for good.

use std::{hash::Hash, sync::atomic::Ordering};

use greenroom_queue::{discard::wake_tasks, sync::MutexGuard};

use super::{Acceptance, Core};
use crate::Actor;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Refuses every later message, under the lock of each shard.
    pub(crate) fn close(&self) {
        let gate = self.lifecycle.gate.lock();
        // Pairs with the load in `notify_progress`, through the fence in `next_progress`: a
        // worker that rests sees that the pool closes, or the stop sees its counts. Otherwise the
        // stop sleeps to its deadline. Also pairs with the loads in `mailbox` and `hold_back`,
        // under locks that this close or the stop takes later: otherwise a message is accepted that
        // is never given back.
        self.lifecycle.closing.store(true, Ordering::SeqCst);
        self.shut_gate(gate, Acceptance::Closed);
        self.membership
            .mailboxes
            .iter()
            .filter_map(|cell| cell.lock().clone())
            .for_each(|mailbox| mailbox.shut());
        self.membership.starts.closed();
    }

    /// Refuses messages if there is no worker, unless the pool is to hold them.
    pub(crate) fn close_if_deserted(&self) {
        if !self.settings.config.size.holds_when_empty {
            self.desert();
        }
    }

    /// One worker less that may handle messages. Without any, the pool refuses messages, unless it
    /// is to hold them.
    pub(super) fn one_less(&self) -> bool {
        // Pairs with the load in `revive`: it comes before `desert` takes the gate, so the pool
        // does not stay open without a worker. One caller alone sees the last worker go.
        let last = self.membership.live.fetch_sub(1, Ordering::SeqCst) == 1;
        if last {
            self.close_if_deserted();
        }
        last
    }

    /// Refuses messages until there is a worker again.
    pub(super) fn desert(&self) {
        let gate = self.lifecycle.gate.lock();
        // Pairs with each `fetch_add` to `live` before `revive`: the later of the two under the
        // gate sees the worker. Otherwise a pool that has a worker stays closed.
        if *gate == Acceptance::Open && self.membership.live.load(Ordering::SeqCst) == 0 {
            self.shut_gate(gate, Acceptance::Deserted);
        }
    }

    /// Refuses messages: permits and shards do before the gate is free again. Those who wait for
    /// room are told under no lock.
    fn shut_gate(&self, mut gate: MutexGuard<'_, Acceptance>, acceptance: Acceptance) {
        *gate = acceptance;
        let room = self.queue.permits.refuse_later();
        self.shut();
        drop(gate);
        wake_tasks(|| room.close());
        self.close_key_lines();
        self.close_bytes();
    }

    /// Accepts messages again, if there is a worker.
    pub(super) fn revive(&self) {
        let mut gate = self.lifecycle.gate.lock();
        // Pairs with the `fetch_sub` in `one_less` before `desert`: the later of the two under the
        // gate sees that no worker is left. Otherwise a pool without workers accepts messages.
        if *gate == Acceptance::Deserted && self.membership.live.load(Ordering::SeqCst) > 0 {
            *gate = Acceptance::Open;
            // Pairs with the load in `dead_letter_if_ruined`: it comes before the shards open, so
            // messages that are accepted from here on are not dead-lettered.
            self.lifecycle.ruined.store(false, Ordering::SeqCst);
            self.queue.permits.reopen();
            self.queue.shards.iter().for_each(|shard| shard.inbox.lock().closed = false);
        }
    }

    fn close_bytes(&self) {
        if let Some(bytes) = &self.settings.derived.bytes {
            bytes.close();
        }
    }

    fn shut(&self) {
        for shard in &self.queue.shards {
            let mut inbox = shard.inbox.lock();
            inbox.closed = true;
            let unused = inbox.take_credit();
            drop(inbox);
            self.queue.permits.return_unused(unused);
        }
    }

    pub(crate) fn accepted(&self) -> u64 {
        let mut accepted = 0;
        for shard in &self.queue.shards {
            accepted += shard.inbox.lock().accepted;
        }
        for slot in 0..self.membership.mailboxes.len() {
            accepted += self.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.accepted());
        }
        accepted + self.telemetry.counters.accepted.load(Ordering::Relaxed)
    }
}
