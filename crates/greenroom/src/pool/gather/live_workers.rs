//! The live workers of a pool, as those know them that send to all of them at once.

use std::sync::{Arc, Weak};

use tokio::runtime::Handle;

use super::{
    Worker,
    group::{Group, WeakGroup},
};
use crate::{Actor, Address, WeakAddress, pool::admin::control::Control};

/// Those of this pool, which `alive` keeps running.
pub(crate) fn group<A: Actor>(
    control: &Arc<dyn Control<A>>,
    alive: Address<A::Message, A::Reply, A::Error>,
) -> Arc<dyn Group<A::Message, A::Reply, A::Error>> {
    Arc::new(LiveWorkers { control: control.clone(), alive })
}

/// The live workers of a pool, which it keeps alive as an address does.
struct LiveWorkers<A: Actor> {
    control: Arc<dyn Control<A>>,
    alive: Address<A::Message, A::Reply, A::Error>,
}

impl<A: Actor> Group<A::Message, A::Reply, A::Error> for LiveWorkers<A> {
    fn members(&self) -> Vec<Worker<A::Message, A::Reply, A::Error>> {
        self.control.clone().live_workers()
    }

    fn runtime(&self) -> &Handle {
        self.alive.runtime()
    }

    fn downgrade(&self) -> Box<dyn WeakGroup<A::Message, A::Reply, A::Error>> {
        let (control, alive) = (Arc::downgrade(&self.control), self.alive.downgrade());
        Box::new(WeakLiveWorkers { control, alive })
    }
}

/// As `LiveWorkers`, held weakly.
struct WeakLiveWorkers<A: Actor> {
    control: Weak<dyn Control<A>>,
    alive: WeakAddress<A::Message, A::Reply, A::Error>,
}

impl<A: Actor> WeakGroup<A::Message, A::Reply, A::Error> for WeakLiveWorkers<A> {
    fn members(&self) -> Option<Vec<Worker<A::Message, A::Reply, A::Error>>> {
        let _alive = self.alive.upgrade().filter(|_| self.alive.is_alive())?;
        Some(self.control.upgrade()?.live_workers())
    }
}
