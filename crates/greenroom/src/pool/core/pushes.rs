//! Steps that do something only in a pool that pushes.

use std::time::Duration;

use super::{Core, Key, Queued};
use crate::{
    Actor,
    pool::{membership::slot_state::HAND_OVER, push::Tables},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// The steps that only a sticky pool has.
    pub(super) fn tables(&self) -> Option<&dyn Tables<A, K, Self>> {
        self.push.as_ref()?.tables()
    }
}

/// Workers have joined: held messages may get one.
pub(super) fn ask_again<A: Actor, K: Key>(core: &Core<A, K>) {
    if let Some(push) = &core.push {
        push.ask_again(core);
    }
}

/// The worker in this slot has nothing in hand: continues the waiting moves.
pub(crate) fn hand_over<A: Actor, K: Key>(core: &Core<A, K>, slot: usize) {
    match core.tables() {
        Some(tables) => tables.hand_over(core, slot),
        None => core.frame.membership.slots.at(slot).done(HAND_OVER),
    }
}

/// The message in hand of a worker, from its mailbox, is to be retried.
pub(crate) fn park_mail<A: Actor, K: Key>(
    core: &Core<A, K>,
    slot: usize,
    entry: Queued<A, K>,
    after: Duration,
) {
    let entry = match core.tables() {
        Some(tables) => tables.park(core, slot, entry, after).err(),
        None => Some(entry),
    };
    if let Some(entry) = entry {
        core.frame.clock.park_mail(slot, entry, after);
    }
}
