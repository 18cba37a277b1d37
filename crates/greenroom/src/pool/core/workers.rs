//! The workers of a pool, each with an address of its own.

use std::{hash::Hash, sync::Arc};

use super::Core;
use crate::{Actor, address::vtable::WorkerVtable, pool::worker_sender::WorkerSender};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// The workers that are there, or being started, in the order in which they joined, each with
    /// its own address. If only `live` ones are wanted, they come in the order of their slots, and
    /// a message for all of them that finds one full is treated there as the pool's overflow policy
    /// says.
    pub(crate) fn workers(
        self: &Arc<Self>,
        live: bool,
    ) -> Vec<WorkerVtable<A::Message, A::Reply, A::Error>> {
        let member_list = self.frame.membership.members.lock();
        let (mut slots, mut mailboxes) = (member_list.slots().collect::<Vec<_>>(), Vec::new());
        if live {
            slots.sort_unstable();
        }
        for slot in slots {
            if let Some(mailbox) = self.member_mailbox(slot, live) {
                mailboxes.push(mailbox);
            }
        }
        drop(member_list);
        let mut workers: Vec<WorkerVtable<_, _, _>> = Vec::with_capacity(mailboxes.len());
        for mailbox in mailboxes {
            let slot = mailbox.slot;
            let vtable = WorkerSender { core: self.clone(), mailbox, overflows: live };
            workers.push((slot, Arc::new(vtable)));
        }
        workers
    }
}
