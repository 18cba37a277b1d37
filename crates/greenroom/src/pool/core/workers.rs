//! The workers of a pool, each with an address of its own.

use std::sync::Arc;

use super::{Core, Key};
use crate::{Actor, address::vtable::ShowWorker, pool::worker_sender::WorkerSender};

impl<A: Actor, K: Key> Core<A, K> {
    /// Shows the workers that are there, or being started, in the order in which they joined, each
    /// with its own address. If only `live` ones are wanted, they come in the order of their slots,
    /// and a message for all of them that finds one full is treated there as the pool's overflow
    /// policy says.
    pub(crate) fn show_workers(
        self: &Arc<Self>,
        live: bool,
        show: &mut ShowWorker<'_, A::Message, A::Reply, A::Error>,
    ) {
        let member_list = self.frame.membership.members.lock();
        for slot in member_list.in_order(live) {
            if let Some(mailbox) = self.member_mailbox(slot, live) {
                show(slot, Arc::new(WorkerSender { core: self.clone(), mailbox, overflows: live }));
            }
        }
    }
}
