//! The mailboxes of a pool's workers: made, filled and cleared.

use std::sync::Arc;

use greenroom_queue::{permits::Closed, sync::Ordering};

use super::{Core, Key};
use crate::{
    Actor, ExitReason,
    pool::{
        membership::{
            mailbox::{Cleared, Mailbox},
            slot_state::{HAND_OVER, MAIL, SIGNAL},
        },
        outgoing::OutgoingOf,
        pool_payload::Entries,
    },
};

/// The mailbox of a worker that is leaving, and the messages in it.
#[must_use = "its messages are in no queue"]
pub(crate) struct TakenMailbox<A: Actor, K> {
    mailbox: Arc<Mailbox<A, K>>,
    rest: Entries<A, K>,
    cleared: Cleared,
}

impl<A: Actor, K: Key> Core<A, K> {
    /// The mailbox of a worker, made on first use.
    pub(crate) fn mailbox(&self, slot: usize) -> Arc<Mailbox<A, K>> {
        let mut cell = self.desk(slot).mailbox.lock();
        if let Some(mailbox) = &*cell {
            return mailbox.clone();
        }
        let slot_state = self.frame.membership.slots.at(slot).clone();
        let mailbox = Arc::new(Mailbox::new(slot, slot_state, self.frame.config.size.mailbox));
        // A close first sets its flag and then visits each cell. Pairs with the store in `close`,
        // before it takes the lock of each cell: it finds this mailbox there, or the mailbox is
        // made shut. Otherwise a closed pool would have a mailbox that accepts.
        if self.frame.lifecycle.closing.load(Ordering::SeqCst) {
            mailbox.shut_unused();
        }
        cell.insert(mailbox).clone()
    }

    /// The mailbox of a worker, if there is one.
    pub(crate) fn mailbox_if_any(&self, slot: usize) -> Option<Arc<Mailbox<A, K>>> {
        self.desk(slot).mailbox.lock().clone()
    }
}

/// Takes back the orders of a worker about its mailbox, if it has none. Call it under the lock
/// under which a mailbox is made: a writer to that one gives its order afterwards.
#[cold]
pub(crate) fn forget_mail<A: Actor, K: Key>(core: &Core<A, K>, slot: usize) {
    let cell = core.desk(slot).mailbox.lock();
    if cell.is_none() {
        core.frame.membership.slots.at(slot).done(MAIL | SIGNAL | HAND_OVER);
    }
}

/// Queues a message at a worker and wakes it. Its permits have been taken.
pub(crate) fn push_to<A: Actor, K: Key>(
    core: &Core<A, K>,
    mailbox: &Mailbox<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Closed> {
    mailbox.push(payload, |number| core.stamp(number))?;
    // A caller that computes on without awaiting holds up this worker, as it would hold up the
    // receiver of a channel. Stepping aside here would cost every sender, and most of them await
    // soon.
    core.queue.wake.call(mailbox.slot, &core.frame.clock.watchdog);
    Ok(())
}

/// Takes the mailbox away from a worker that is leaving: from now on its slot may get another. The
/// mailbox no longer accepts messages. Those that it has accepted are counted under the lock of its
/// cell: a stop that finds the mailbox gone sees the count. Otherwise the stop would count too few
/// messages and end the pool before the rest.
pub(crate) fn take_mailbox<A: Actor, K: Key>(
    core: &Core<A, K>,
    slot: usize,
) -> Option<TakenMailbox<A, K>> {
    let mut cell = core.desk(slot).mailbox.lock();
    let mailbox = cell.take()?;
    let (rest, cleared) = mailbox.clear();
    core.frame.telemetry.counters.accepted.fetch_add(mailbox.accepted(), Ordering::Relaxed);
    Some(TakenMailbox { mailbox, rest, cleared })
}

/// A worker has gone for this reason: the messages of its own mailbox, which has been taken away,
/// go to any other worker.
pub(crate) fn clear_mailbox<A: Actor, K: Key>(
    core: &Arc<Core<A, K>>,
    taken: TakenMailbox<A, K>,
    reason: &ExitReason,
) {
    let TakenMailbox { mailbox, rest, cleared } = taken;
    cleared.close();
    debug_assert!(rest.iter().all(|entry| entry.hash == 0), "keys have been given up before");
    re_home(core, rest);
    core.end_of_worker(&mailbox, reason);
    if core.mailbox_if_any(mailbox.slot).is_some() {
        // The next worker has the same orders: those taken back may have been meant for it.
        mailbox.slot_state.order(MAIL | SIGNAL);
        core.queue.wake.call(mailbox.slot, &core.frame.clock.watchdog);
    }
    // A stop that checked in the meantime may have counted its accepted messages twice.
    core.frame.lifecycle.notify_progress();
}

/// Puts messages into the pool's queue, for any worker. They keep their permits.
pub(crate) fn re_home<A: Actor, K: Key>(core: &Core<A, K>, mut entries: Entries<A, K>) {
    if entries.is_empty() {
        return;
    }
    let mut outbox = core.queue.shards[0].outbox.lock();
    let mut inbox = core.queue.shards[0].inbox.lock();
    while let Some(entry) = entries.pop_front() {
        if entry.urgent {
            inbox.urgent.push_back(entry);
            core.queue.wake.set_urgent(0);
        } else {
            outbox.queue.push_back(entry);
        }
    }
    inbox.scheduled = true;
    drop((inbox, outbox));
    core.announce(0);
}
