//! The workers of a pool, each with an address of its own.

use std::{hash::Hash, sync::Arc};

use super::Core;
use crate::{
    Actor, Address,
    pool::gather::{Worker, worker_sender::WorkerSender},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// The workers that are there (or, unless only `live` ones are wanted, are being started), in
    /// the order in which they joined, each with its own address. A message for all live ones that
    /// finds one full is treated there as the pool's overflow policy says.
    pub(crate) fn workers(
        self: &Arc<Self>,
        live: bool,
    ) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        let member_list = self.membership.members.lock();
        let members = member_list.slots();
        let mailboxes: Vec<_> =
            members.filter_map(|slot| self.member_mailbox(slot, live)).collect();
        drop(member_list);
        mailboxes
            .into_iter()
            .map(|mailbox| {
                let slot = mailbox.slot;
                let vtable = WorkerSender { core: self.clone(), mailbox, overflows: live };
                let vtable = Arc::new(vtable);
                Worker::new(slot, Address::new(vtable))
            })
            .collect()
    }
}
