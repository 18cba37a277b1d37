//! The way of a message that a worker does not take: an adopted worker refuses the messages that
//! its own pool refuses.

use std::{
    cmp::Reverse,
    sync::{Arc, atomic::Ordering},
};

use super::{Core, Key, dispatch::member_mailbox};
use crate::{
    Actor,
    pool::membership::{mailbox::Mailbox, slot_state::Status},
};

/// How well a worker suits a message; a greater value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fitness {
    /// It is being restarted, and takes any message.
    Starts,
    /// It was adopted too, and may refuse.
    MayRefuse,
    /// It takes any message.
    Takes,
}

/// The mailbox of the least busy worker among those that have not refused a message. `None` if
/// there is no other.
pub(crate) fn who_else<A: Actor, K: Key>(
    core: &Core<A, K>,
    refused_by: &[(usize, u64)],
) -> Option<Arc<Mailbox<A, K>>> {
    let member_list = core.frame.membership.members.lock();
    let mut best = None;
    for slot in member_list.slots() {
        let slot_state = core.frame.membership.slots.at(slot);
        if refused_by.contains(&(slot, slot_state.tasks.load(Ordering::Relaxed))) {
            continue;
        }
        let details = slot_state.details.lock();
        let fitness = match (details.status, &details.adopted) {
            (Status::Live, None) => Fitness::Takes,
            (Status::Live | Status::Starting, Some(_)) => Fitness::MayRefuse,
            (Status::Starting, None) => Fitness::Starts,
            _ => continue,
        };
        drop(details);
        let waiting = core.mailbox_if_any(slot).map_or(0, |mailbox| mailbox.waiting());
        let load = waiting + usize::from(slot_state.is_busy());
        best = best.max(Some((fitness, Reverse(load), Reverse(slot))));
    }
    let (_, _, Reverse(slot)) = best?;
    member_mailbox(core, slot, false)
}
