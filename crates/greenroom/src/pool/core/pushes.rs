//! Steps that do something only in a pool that pushes.

use std::time::Duration;

use super::{Core, Key, Queued};
use crate::{Actor, pool::membership::slot_state::HAND_OVER};

/// Workers have joined: held messages may get one.
pub(super) fn ask_again<A: Actor, K: Key>(core: &Core<A, K>) {
    if let Some(push) = &core.push {
        push.ask_again(core);
    }
}

/// The worker in this slot has nothing in hand: continues the waiting moves.
pub(crate) fn hand_over<A: Actor, K: Key>(core: &Core<A, K>, slot: usize) {
    if !core.push.as_ref().is_some_and(|push| push.hand_over(core, slot)) {
        core.frame.membership.slots.at(slot).done(HAND_OVER);
    }
}

/// The message in hand of a worker, from its mailbox, is to be retried.
pub(crate) fn park_mail<A: Actor, K: Key>(
    core: &Core<A, K>,
    slot: usize,
    entry: Queued<A, K>,
    after: Duration,
) {
    let entry = match &core.push {
        Some(push) => push.park(core, slot, entry, after).err(),
        None => Some(entry),
    };
    if let Some(entry) = entry {
        core.frame.clock.park_mail(slot, entry, after);
    }
}
