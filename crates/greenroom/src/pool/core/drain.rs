//! What waits in a pool whose workers will not handle it: it is taken out of every place, and given
//! back or made dead letters.

use std::sync::{Arc, atomic::Ordering};

use greenroom_queue::{discard::discard, entry::retries};

use super::{Acceptance, Core, Key, Queued, sweep::LaneOf};
use crate::{
    Actor, CallError, DeadLetter, DeadLetterReason,
    pool::{
        membership::{
            mailbox::{Cleared, Mailbox},
            slot_state::LEAVE,
        },
        pool_payload::Entries,
    },
};

/// What was taken out of the queues, and what goes with it.
#[must_use = "it is to be closed under no lock"]
struct Drained<A: Actor, K> {
    entries: Entries<A, K>,
    /// Lanes that no worker runs.
    unowned: Vec<LaneOf<A, K>>,
    /// What is left of the mailboxes that were cleared.
    cleared: Vec<Cleared>,
    /// Mailboxes that stay with their workers, and have room.
    stay: Vec<Arc<Mailbox<A, K>>>,
}

impl<A: Actor, K> Drained<A, K> {
    /// Tells those who wait for room in the mailboxes, and drops keys: both run user code. Returns
    /// the messages, those of a key in their order.
    fn close(mut self) -> Entries<A, K> {
        for mailbox in &self.stay {
            mailbox.serve_waiters();
        }
        for cleared in self.cleared {
            cleared.close();
        }
        while let Some(lane) = self.unowned.pop() {
            discard(lane);
        }
        let mut place = 0;
        while let Some(entry) = self.entries.get_mut(place) {
            discard(entry.key.take());
            place += 1;
        }
        self.entries
    }
}

impl<A: Actor, K: Key> Core<A, K> {
    /// Gives back every message that waits anywhere. Only after `close`, when none will be handled.
    pub(crate) fn give_back_queued(&self) {
        let mut entries = self.drain_queues(true).close();
        entries.append(&mut self.take_handed(usize::MAX));
        self.give_back(entries);
    }

    /// Makes a dead letter of every message that waits anywhere, and of those that are on their way
    /// from one place to another. Only if no worker is left and nothing is accepted: if one has
    /// joined since the caller looked, the messages are left to it.
    pub(crate) fn dead_letter_queued(&self) {
        // First, and under no lock, as this wakes callers. In the queue it is found by whoever is
        // right: the worker that has joined, or the drain.
        self.re_home(self.take_handed(usize::MAX));
        let Some(drained) = self.drain_if_deserted() else { return };
        let mut entries = drained.close();
        while let Some(entry) = entries.pop_front() {
            self.bury(entry, DeadLetterReason::NoWorkers, CallError::NoWorkers);
        }
    }

    /// A message that waited becomes a dead letter, and its caller hears why.
    pub(super) fn bury(
        &self,
        entry: Queued<A, K>,
        reason: DeadLetterReason,
        why: CallError<A::Error>,
    ) {
        self.frame.telemetry.counters.dead_letters.count_shared(reason);
        let age = self.age_of(&entry);
        let (port, attempts) = match entry.extra {
            Some(extra) => (extra.port, extra.attempts),
            None => (None, 0),
        };
        if let Some(port) = port {
            port.resolve(why);
        }
        discard(entry.key);
        let message = Some(entry.message);
        let letter = DeadLetter { message, reason, error: None, panic: None, attempts, age };
        self.report_dead_letter(letter);
    }

    /// Takes every message that waits anywhere, and has later ones dead-lettered, unless there is a
    /// worker.
    ///
    /// All of it under the gate: a worker that joins opens the pool before, and is left what is
    /// queued, or afterwards, and then nothing that is accepted for it is dead-lettered.
    fn drain_if_deserted(&self) -> Option<Drained<A, K>> {
        let gate = self.frame.lifecycle.gate.lock();
        // Pairs with each `fetch_add` to `live` before `revive`: if it is missed here, `revive`
        // comes later. Otherwise a pool that was opened and closed again dead-letters what its
        // worker handles.
        if *gate == Acceptance::Open || self.frame.membership.live.load(Ordering::SeqCst) > 0 {
            return None;
        }
        // Pairs with the load in `dead_letter_if_ruined`: a message between two places is in a
        // queue before the queues are drained below, or its mover dead-letters it.
        self.frame.lifecycle.ruined.store(true, Ordering::SeqCst);
        let drained = self.drain_queues(false);
        self.queue.permits.return_unused(drained.entries.len() as u64);
        Some(drained)
    }

    /// Takes what waits in the mailboxes of all workers, and held messages. Not while a message is
    /// on its way from the one to the other.
    fn drain_mailboxes(&self, drained: &mut Drained<A, K>, for_good: bool) {
        let moves = self.routing.sticky.as_ref().map(|sticky| sticky.moves.lock());
        for slot in 0..self.desks.len() {
            let mut cell = self.desk(slot).mailbox.lock();
            let Some(mailbox) = cell.clone() else { continue };
            let (mut rest, cleared) = mailbox.drain(for_good);
            // A worker that leaves takes its mailbox away itself, which ends its life. Pairs with
            // `left`: the order is there until that has been done.
            let leaves = !for_good && mailbox.slot_state.has(LEAVE);
            if cleared.is_some() && !leaves {
                *cell = None;
                self.frame
                    .telemetry
                    .counters
                    .accepted
                    .fetch_add(mailbox.accepted(), Ordering::Relaxed);
            }
            drained.entries.append(&mut rest);
            match cleared {
                Some(cleared) => drained.cleared.push(cleared),
                None => drained.stay.push(mailbox),
            }
        }
        let mut held = std::mem::take(&mut *self.routing.held.lock());
        drained.entries.append(&mut held);
        drop(moves);
    }

    /// Keeps messages that will not be handled for the stop that takes them.
    pub(super) fn give_back(&self, mut entries: Entries<A, K>) {
        self.frame.telemetry.counters.returned.fetch_add(entries.len() as u64, Ordering::Relaxed);
        let mut deliveries = Vec::with_capacity(entries.len());
        while let Some(entry) = entries.pop_front() {
            deliveries.push(self.delivery_of(entry));
        }
        self.left_over.give_back(deliveries);
    }

    /// Takes every message that waits anywhere, but for those that were handed to workers. If not
    /// `for_good`, what workers have in hand keeps its place before later messages. Runs no user
    /// code.
    fn drain_queues(&self, for_good: bool) -> Drained<A, K> {
        let (mut entries, mut unowned) = (Entries::<A, K>::new(), Vec::new());
        // First: what is parked meanwhile, at a place that was drained already, keeps its alarm.
        // Otherwise its key would wait forever once there is a worker again.
        let mut retrying = self.frame.clock.drain::<A, K>();
        for (index, shard) in self.queue.shards.iter().enumerate() {
            let mut outbox = shard.outbox.lock();
            outbox.forget_ready();
            let apart = outbox.lanes.drain(&mut entries, &mut unowned);
            // The callers count a permit for each message.
            for _ in 0..apart {
                self.queue.permits.take_back();
            }
            while let Some(entry) = outbox.queue.pop_front() {
                entries.push_back(entry);
            }
            let mut inbox = shard.inbox.lock();
            entries.append(&mut inbox.urgent);
            self.queue.wake.clear_urgent(index);
            while let Some(entry) = inbox.queue.pop_front() {
                entries.push_back(entry);
            }
            if let Some(backlog) = &mut outbox.backlog {
                backlog.clear();
            }
        }
        let mut drained = Drained { entries, unowned, cleared: Vec::new(), stay: Vec::new() };
        self.drain_mailboxes(&mut drained, for_good);
        drained.entries.append(&mut retrying);
        self.frame
            .telemetry
            .counters
            .waiting
            .fetch_sub(retries(&drained.entries), Ordering::Relaxed);
        drained
    }
}
