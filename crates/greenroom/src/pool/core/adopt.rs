//! Another actor or pool as a worker of a pool.

use std::sync::{Arc, atomic::Ordering};

use greenroom_queue::lock::Mutex;

use super::{Core, Key};
use crate::{
    Actor, Address, PoolEvent,
    pool::{
        AdminError,
        admin::change::Outcomes,
        frame::{
            capacity::size_changed,
            gate::revive,
            members::{make_slots, members},
            notify::notify_size,
        },
        membership::{adopted_member::AdoptedMember, slot_state::Status},
        worker,
    },
    pool_events::ResizeReason,
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Takes another actor or pool in as a worker, which ends with this one if it `is_owned`.
    /// Returns its slot and the new size.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        other: Address<A::Message, A::Reply, A::Error>,
        is_owned: bool,
        outcomes: &Outcomes,
    ) -> Result<(usize, usize), AdminError> {
        /// Two that adopt each other must not both find that the other does not contain them yet.
        static ADOPTING: Mutex<()> = Mutex::new(());
        self.frame.lifecycle.check_running()?;
        if self.keyed() || self.routing.sticky.is_some() {
            return Err(AdminError::Ordered);
        }
        let adopting = ADOPTING.lock();
        if other.vtable.contains(self.identity()) {
            return Err(AdminError::ContainsItself);
        }
        let mut member_list = members(&**self)?;
        let bounds = member_list.bounds();
        if member_list.len() >= *bounds.end() {
            return Err(AdminError::OutOfBounds { asked: member_list.len() + 1, bounds });
        }
        let slot = member_list.join();
        make_slots(&**self, &member_list);
        let size = member_list.len();
        let adopted = AdoptedMember { other: other.erase(), is_owned, again: None };
        {
            let mut details = self.frame.membership.slots.at(slot).details.lock();
            details.status = Status::Starting;
            details.adopted = Some(adopted);
        }
        size_changed(&**self, size);
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.frame.membership.live.fetch_add(1, Ordering::SeqCst);
        drop((member_list, adopting));
        revive(&**self);
        notify_size(&**self, size - 1, size, ResizeReason::Asked);
        self.frame.notify(PoolEvent::WorkerAdded { slot });
        let run = worker::adopted::run(self.clone(), slot, other, outcomes.clone());
        self.frame.spawn_worker(slot, Box::pin(run));
        Ok((slot, size))
    }
}
