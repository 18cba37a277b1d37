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
            members::{Changed, make_slots, members},
            notify::notify_size,
        },
        membership::{adopted_member::AdoptedMember, slot_state::Status},
        worker,
    },
    pool_events::ResizeReason,
};

/// Adopts another actor or pool as a worker. If it `is_owned`, it ends with this pool.
pub(crate) fn adopt<A: Actor, K: Key>(
    core: &Arc<Core<A, K>>,
    other: Address<A::Message, A::Reply, A::Error>,
    is_owned: bool,
    outcomes: &Outcomes,
) -> Changed {
    /// Two pools that adopt each other must not both find that the other does not contain them yet.
    static ADOPTING: Mutex<()> = Mutex::new(());
    core.frame.lifecycle.check_running()?;
    if core.keyed() || core.routing.sticky.is_some() {
        return Err(AdminError::Ordered);
    }
    let adopting = ADOPTING.lock();
    if other.vtable.contains(core.identity()) {
        return Err(AdminError::ContainsItself);
    }
    let mut member_list = members(&**core)?;
    let bounds = member_list.bounds();
    if member_list.len() >= *bounds.end() {
        return Err(AdminError::OutOfBounds { asked: member_list.len() + 1, bounds });
    }
    let slot = member_list.join();
    make_slots(&**core, &member_list);
    let size = member_list.len();
    let adopted = AdoptedMember { other: other.erase(), is_owned, again: None };
    {
        let mut details = core.frame.membership.slots.at(slot).details.lock();
        details.status = Status::Starting;
        details.adopted = Some(adopted);
    }
    size_changed(&**core, size);
    // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool does
    // not stay closed while it has a worker.
    core.frame.membership.live.fetch_add(1, Ordering::SeqCst);
    drop((member_list, adopting));
    revive(&**core);
    notify_size(&**core, size - 1, size, ResizeReason::Asked);
    core.frame.notify(PoolEvent::WorkerAdded { slot });
    let run = worker::adopted::run(core.clone(), slot, other, outcomes.clone());
    core.frame.spawn_worker(slot, Box::pin(run));
    Ok((vec![slot], Vec::new(), size))
}
