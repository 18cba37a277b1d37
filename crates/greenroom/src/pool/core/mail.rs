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

/// The mailbox of a worker that goes, and what waits there.
#[must_use = "its messages are in no queue"]
pub(crate) struct TakenMailbox<A: Actor, K> {
    mailbox: Arc<Mailbox<A, K>>,
    rest: Entries<A, K>,
    cleared: Cleared,
}

impl<A: Actor, K: Key> Core<A, K> {
    /// The mailbox of a worker, made if there is none yet.
    pub(crate) fn mailbox(&self, slot: usize) -> Arc<Mailbox<A, K>> {
        let mut cell = self.desk(slot).mailbox.lock();
        if let Some(mailbox) = &*cell {
            return mailbox.clone();
        }
        let slot_state = self.frame.membership.slots.at(slot).clone();
        let mailbox = Arc::new(Mailbox::new(slot, slot_state, self.frame.config.size.mailbox));
        // A close says so first, and then goes from cell to cell. Pairs with the store in `close`,
        // before it takes the lock of each cell: it finds this mailbox there, or the mailbox is
        // made shut. Otherwise a closed pool has a mailbox that accepts.
        if self.frame.lifecycle.closing.load(Ordering::SeqCst) {
            mailbox.shut_unused();
        }
        cell.insert(mailbox).clone()
    }

    /// The mailbox of a worker, if there is one.
    pub(crate) fn mailbox_if_any(&self, slot: usize) -> Option<Arc<Mailbox<A, K>>> {
        self.desk(slot).mailbox.lock().clone()
    }

    /// Takes back the orders of a worker about a mailbox, if it has none. Under the lock under
    /// which one is made: a writer into that one gives its order afterwards.
    #[cold]
    pub(crate) fn forget_mail(&self, slot: usize) {
        let cell = self.desk(slot).mailbox.lock();
        if cell.is_none() {
            self.frame.membership.slots.at(slot).done(MAIL | SIGNAL | HAND_OVER);
        }
    }

    /// Queues a message at a worker, whose permits have been taken, and wakes it.
    pub(crate) fn push_to(
        &self,
        mailbox: &Mailbox<A, K>,
        payload: &mut OutgoingOf<A>,
    ) -> Result<(), Closed> {
        mailbox.push(payload, |number| self.stamp(number))?;
        // A caller that computes on, and does not await, holds up this worker, as it would the
        // receiver of a channel. To step aside here would have all senders pay, most of which
        // await soon.
        self.queue.wake.call(mailbox.slot, &self.frame.clock.watchdog);
        Ok(())
    }

    /// Takes the mailbox of a worker away that goes: from here on, its slot may have another. It
    /// accepts nothing any more. What it has accepted is counted under the lock of its cell: a stop
    /// that finds it gone sees the count. Otherwise the stop would find fewer messages than there
    /// are, and end the pool over the rest.
    pub(crate) fn take_mailbox(&self, slot: usize) -> Option<TakenMailbox<A, K>> {
        let mut cell = self.desk(slot).mailbox.lock();
        let mailbox = cell.take()?;
        let (rest, cleared) = mailbox.clear();
        self.frame.telemetry.counters.accepted.fetch_add(mailbox.accepted(), Ordering::Relaxed);
        Some(TakenMailbox { mailbox, rest, cleared })
    }

    /// A worker has gone for this reason: the messages of its own mailbox, which has been taken
    /// away, go to any other.
    pub(crate) fn clear_mailbox(self: &Arc<Self>, taken: TakenMailbox<A, K>, reason: &ExitReason) {
        let TakenMailbox { mailbox, rest, cleared } = taken;
        cleared.close();
        debug_assert!(rest.iter().all(|entry| entry.hash == 0), "keys have been given up before");
        self.re_home(rest);
        self.end_of_worker(&mailbox, reason);
        if self.mailbox_if_any(mailbox.slot).is_some() {
            // The next worker has the same orders: what was taken back may have been meant for it.
            mailbox.slot_state.order(MAIL | SIGNAL);
            self.queue.wake.call(mailbox.slot, &self.frame.clock.watchdog);
        }
        // A stop that looked meanwhile may have counted what it has accepted twice.
        self.frame.lifecycle.notify_progress();
    }

    /// Puts messages into the pool's queue, for any worker. They keep their permits.
    pub(crate) fn re_home(&self, mut entries: Entries<A, K>) {
        if entries.is_empty() {
            return;
        }
        let mut outbox = self.queue.shards[0].outbox.lock();
        let mut inbox = self.queue.shards[0].inbox.lock();
        while let Some(entry) = entries.pop_front() {
            if entry.urgent {
                inbox.urgent.push_back(entry);
                self.queue.wake.set_urgent(0);
            } else {
                outbox.queue.push_back(entry);
            }
        }
        inbox.scheduled = true;
        drop((inbox, outbox));
        self.announce(0);
    }
}
