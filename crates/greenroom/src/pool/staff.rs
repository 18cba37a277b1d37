//! The live workers of a pool, as those know them that send to all of them at once.

use std::sync::{Arc, Weak};

use super::gather::{
    Worker,
    crew::{Crew, WeakCrew},
};
use crate::{Actor, Address, WeakAddress, pool::admin::control::Control};

/// Those of this pool, which `alive` keeps running.
pub(super) fn crew<A: Actor>(
    control: &Arc<dyn Control<A>>,
    alive: Address<A::Message, A::Reply, A::Error>,
) -> Arc<dyn Crew<A::Message, A::Reply, A::Error>> {
    Arc::new(Staff { control: control.clone(), alive })
}

/// The live workers of a pool, which it keeps alive as an address does.
struct Staff<A: Actor> {
    control: Arc<dyn Control<A>>,
    alive: Address<A::Message, A::Reply, A::Error>,
}

impl<A: Actor> Crew<A::Message, A::Reply, A::Error> for Staff<A> {
    fn members(&self) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        self.control.clone().live_workers()
    }

    fn downgrade(&self) -> Box<dyn WeakCrew<A::Message, A::Reply, A::Error>> {
        let (control, alive) = (Arc::downgrade(&self.control), self.alive.downgrade());
        Box::new(WeakStaff { control, alive })
    }
}

/// As `Staff`, held weakly.
struct WeakStaff<A: Actor> {
    control: Weak<dyn Control<A>>,
    alive: WeakAddress<A::Message, A::Reply, A::Error>,
}

impl<A: Actor> WeakCrew<A::Message, A::Reply, A::Error> for WeakStaff<A> {
    fn members(&self) -> Option<Vec<Worker<A::Message, A::Reply, A::Error>>> {
        let _alive = self.alive.upgrade().filter(|_| self.alive.is_alive())?;
        Some(self.control.upgrade()?.live_workers())
    }
}
