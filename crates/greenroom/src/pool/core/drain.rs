//! Messages in a pool whose workers will not handle them: they are taken out of every place, and
//! given back or made dead letters.

use std::sync::{Arc, atomic::Ordering};

use greenroom_queue::{discard::discard, entry::retries};

use super::{
    Acceptance, Core, Key, Queued,
    mail::re_home,
    notify::{age_of, delivery_of, report_dead_letter},
    serve::take_handed,
    sweep::LaneOf,
};
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

/// Messages that were taken out of the queues, and the objects to clean up with them.
#[must_use = "it is to be closed under no lock"]
struct Drained<A: Actor, K> {
    entries: Entries<A, K>,
    /// Lanes that no worker runs.
    unowned: Vec<LaneOf<A, K>>,
    /// The rest of the mailboxes that were cleared.
    cleared: Vec<Cleared>,
    /// Mailboxes that stay with their workers and have room now.
    stay: Vec<Arc<Mailbox<A, K>>>,
}

impl<A: Actor, K> Drained<A, K> {
    /// Notifies senders that wait for room in the mailboxes, and drops keys: both run user code.
    /// Returns the messages, with those of a key in order.
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

/// Gives back every waiting message. Only after `close`, when no message will be handled.
pub(crate) fn give_back_queued<A: Actor, K: Key>(core: &Core<A, K>) {
    let mut entries = drain_queues(core, true).close();
    entries.append(&mut take_handed(core, usize::MAX));
    give_back(core, entries);
}

/// Makes a dead letter of every message that waits or moves from one place to another. Only if no
/// worker is left and nothing is accepted: if a worker has joined since the caller checked, the
/// messages are left to it.
pub(crate) fn dead_letter_queued<A: Actor, K: Key>(core: &Core<A, K>) {
    // First, and under no lock, as this wakes callers. In the queue the messages are found by the
    // right party: the worker that has joined, or the drain.
    re_home(core, take_handed(core, usize::MAX));
    let Some(drained) = drain_if_deserted(core) else { return };
    let mut entries = drained.close();
    while let Some(entry) = entries.pop_front() {
        bury(core, entry, DeadLetterReason::NoWorkers, CallError::NoWorkers);
    }
}

/// Makes a dead letter of a message that waited, and tells its caller why.
pub(super) fn bury<A: Actor, K: Key>(
    core: &Core<A, K>,
    entry: Queued<A, K>,
    reason: DeadLetterReason,
    why: CallError<A::Error>,
) {
    core.frame.telemetry.counters.dead_letters.count_shared(reason);
    let age = age_of(core, &entry);
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
    report_dead_letter(core, letter);
}

/// Takes every waiting message and has later ones dead-lettered, unless there is a worker.
///
/// All of it happens under the gate. A worker that joins before opens the pool, and the queued
/// messages are left to it; if it joins afterwards, nothing that is accepted for it is
/// dead-lettered.
fn drain_if_deserted<A: Actor, K: Key>(core: &Core<A, K>) -> Option<Drained<A, K>> {
    let gate = core.frame.lifecycle.gate.lock();
    // Pairs with each `fetch_add` to `live` before `revive`: if it is missed here, `revive` comes
    // later. Otherwise a pool that was opened and closed again would dead-letter messages that its
    // worker handles.
    if *gate == Acceptance::Open || core.frame.membership.live.load(Ordering::SeqCst) > 0 {
        return None;
    }
    // Pairs with the load in `dead_letter_if_ruined`: a message between two places is in a queue
    // before the queues are drained below, or its mover dead-letters it.
    core.frame.lifecycle.ruined.store(true, Ordering::SeqCst);
    let drained = drain_queues(core, false);
    core.queue.permits.return_unused(drained.entries.len() as u64);
    Some(drained)
}

/// Takes the messages in the mailboxes of all workers, and held messages. Not while a message moves
/// from one to the other.
fn drain_mailboxes<A: Actor, K: Key>(
    core: &Core<A, K>,
    drained: &mut Drained<A, K>,
    for_good: bool,
) {
    let moves = core.routing.sticky.as_ref().map(|sticky| sticky.moves.lock());
    for slot in 0..core.desks.len() {
        let mut cell = core.desk(slot).mailbox.lock();
        let Some(mailbox) = cell.clone() else { continue };
        let (mut rest, cleared) = mailbox.drain(for_good);
        // A leaving worker takes its mailbox away itself, which ends its life. Pairs with `left`:
        // the order is there until that has been done.
        let leaves = !for_good && mailbox.slot_state.has(LEAVE);
        if cleared.is_some() && !leaves {
            *cell = None;
            core.frame.telemetry.counters.accepted.fetch_add(mailbox.accepted(), Ordering::Relaxed);
        }
        drained.entries.append(&mut rest);
        match cleared {
            Some(cleared) => drained.cleared.push(cleared),
            None => drained.stay.push(mailbox),
        }
    }
    let mut held = std::mem::take(&mut *core.routing.held.lock());
    drained.entries.append(&mut held);
    drop(moves);
}

/// Keeps messages that will not be handled for the stop that takes them.
pub(super) fn give_back<A: Actor, K: Key>(core: &Core<A, K>, mut entries: Entries<A, K>) {
    core.frame.telemetry.counters.returned.fetch_add(entries.len() as u64, Ordering::Relaxed);
    let mut deliveries = Vec::with_capacity(entries.len());
    while let Some(entry) = entries.pop_front() {
        deliveries.push(delivery_of(core, entry));
    }
    core.left_over.give_back(deliveries);
}

/// Takes every waiting message except those that were handed to workers. If not `for_good`,
/// messages in hand keep their places before later messages. Runs no user code.
fn drain_queues<A: Actor, K: Key>(core: &Core<A, K>, for_good: bool) -> Drained<A, K> {
    let (mut entries, mut unowned) = (Entries::<A, K>::new(), Vec::new());
    // First, so that a message that is parked in the meantime, at a place that was drained already,
    // keeps its alarm. Otherwise its key would wait forever once there is a worker again.
    let mut retrying = core.frame.clock.drain::<A, K>();
    for (index, shard) in core.queue.shards.iter().enumerate() {
        let mut outbox = shard.outbox.lock();
        outbox.forget_ready();
        let apart = outbox.lanes.drain(&mut entries, &mut unowned);
        // The callers count a permit for each message.
        for _ in 0..apart {
            core.queue.permits.take_back();
        }
        while let Some(entry) = outbox.queue.pop_front() {
            entries.push_back(entry);
        }
        let mut inbox = shard.inbox.lock();
        entries.append(&mut inbox.urgent);
        core.queue.wake.clear_urgent(index);
        while let Some(entry) = inbox.queue.pop_front() {
            entries.push_back(entry);
        }
        if let Some(backlog) = &mut outbox.backlog {
            backlog.clear();
        }
    }
    let mut drained = Drained { entries, unowned, cleared: Vec::new(), stay: Vec::new() };
    drain_mailboxes(core, &mut drained, for_good);
    drained.entries.append(&mut retrying);
    core.frame.telemetry.counters.waiting.fetch_sub(retries(&drained.entries), Ordering::Relaxed);
    drained
}
