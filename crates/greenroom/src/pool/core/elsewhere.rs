//! The way of a message that a worker does not take: an adopted one refuses what its own
//! pool refuses.

use std::{cmp::Reverse, sync::Arc};

use super::{Core, Key, Queued};
use crate::{
    Actor,
    pool::membership::{mailbox::Mailbox, slot_state::Status},
};

/// Which worker is better for a message; the greater, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fitness {
    /// It is being started again, and takes what there is.
    Starts,
    /// It was adopted too, and may refuse.
    MayRefuse,
    /// It takes what there is.
    Takes,
}

impl<A: Actor, K: Key> Core<A, K> {
    /// The mailbox of the least busy worker of those that have not refused a message. None if there
    /// is no other.
    pub(crate) fn who_else(&self, refused_by: &[usize]) -> Option<Arc<Mailbox<A, K>>> {
        let member_list = self.frame.membership.members.lock();
        let mut best = None;
        for slot in member_list.slots() {
            if !refused_by.contains(&slot)
                && let Some(fitness) = self.fitness(slot)
            {
                best = best.max(Some((fitness, Reverse(self.load(slot)), Reverse(slot))));
            }
        }
        let (_, _, Reverse(slot)) = best?;
        self.member_mailbox(slot, false)
    }

    fn fitness(&self, slot: usize) -> Option<Fitness> {
        let details = self.frame.membership.slots.at(slot).details.lock();
        match (details.status, &details.adopted) {
            (Status::Live, None) => Some(Fitness::Takes),
            (Status::Live | Status::Starting, Some(_)) => Some(Fitness::MayRefuse),
            (Status::Starting, None) => Some(Fitness::Starts),
            _ => None,
        }
    }

    /// Messages that a worker has by itself.
    fn load(&self, slot: usize) -> usize {
        let waiting = self.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.waiting());
        waiting + usize::from(self.frame.membership.slots.at(slot).is_busy())
    }

    /// Gives a message to this worker; if it has gone since, to any other.
    pub(crate) fn leave_to(&self, mailbox: &Mailbox<A, K>, entry: Queued<A, K>) {
        match mailbox.put_again(entry) {
            Ok(()) => drop(self.queue.wake.call(mailbox.slot, &self.frame.clock.watchdog)),
            Err(entry) => self.wake_message(0, entry),
        }
    }
}
