//! The workers of a pool, each with an address of its own.

use std::sync::Arc;

use super::{Core, Key, dispatch::member_mailbox};
use crate::{Actor, address::vtable::ShowWorker, pool::worker_sender::WorkerSender};

/// Calls `show` for the workers that are there or being started, in the order in which they joined,
/// each with its own address. If only `live` ones are wanted, they come in the order of their
/// slots, and if one of them is full, a message for all of them follows the pool's overflow policy
/// there.
pub(crate) fn show_workers<A: Actor, K: Key>(
    core: &Arc<Core<A, K>>,
    live: bool,
    show: &mut ShowWorker<'_, A::Message, A::Reply, A::Error>,
) {
    let member_list = core.frame.membership.members.lock();
    for slot in member_list.in_order(live) {
        if let Some(mailbox) = member_mailbox(core, slot, live) {
            show(slot, Arc::new(WorkerSender { core: core.clone(), mailbox, overflows: live }));
        }
    }
}
