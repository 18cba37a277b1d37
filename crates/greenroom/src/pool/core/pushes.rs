//! Where a pool that pushes does something, and another does nothing.

use std::time::Duration;

use super::{Core, Key, Queued};
use crate::{
    Actor,
    pool::{membership::slot_state::HAND_OVER, outgoing::OutgoingOf, push::Migrated},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Workers have come: what was held may have one.
    pub(super) fn ask_again(&self) {
        if let Some(push) = &self.push {
            push.ask_again(self);
        }
    }

    /// True if a message is for this worker, or soon will be. Runs user code.
    pub(super) fn is_assigned_to(&self, payload: &OutgoingOf<A>, slot: usize) -> bool {
        self.push.as_ref().is_some_and(|push| push.is_assigned_to(self, payload, slot))
    }

    /// Wakes the workers and senders that a move concerns. Under no lock.
    pub(super) fn migrated(&self, migrated: Migrated<A, K>) {
        if let Some(push) = &self.push {
            push.migrated(self, migrated);
        }
    }

    /// The worker in this slot has nothing in hand: waiting moves go on.
    pub(crate) fn hand_over(&self, slot: usize) {
        if !self.push.as_ref().is_some_and(|push| push.hand_over(self, slot)) {
            self.frame.membership.slots.at(slot).done(HAND_OVER);
        }
    }

    /// The message in hand of a worker, from its mailbox, is to be attempted again.
    pub(crate) fn park_mail(&self, slot: usize, entry: Queued<A, K>, after: Duration) {
        let entry = match &self.push {
            Some(push) => push.park(self, slot, entry, after).err(),
            None => Some(entry),
        };
        if let Some(entry) = entry {
            self.frame.clock.park_mail(slot, entry, after);
        }
    }
}
