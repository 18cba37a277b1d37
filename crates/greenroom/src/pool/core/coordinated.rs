//! What a coordinator hears of its pool, and what it is given in place of the workers.

use std::hash::Hash;

use greenroom_queue::{permits::Refused, urgency::Urgency};

use super::Core;
use crate::{Actor, AddressOf, ExitReason, any_address::Erased, pool::outgoing::OutgoingOf};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// The pool has ended. Called once.
    pub(crate) fn dismiss_coordinator(&self, reason: &ExitReason) {
        if let Some(coordination) = self.controllers.coordination.get() {
            coordination.say_good_bye(reason.clone(), &self.env.runtime);
        }
    }

    /// Queues an urgent message at the coordinator.
    #[cold]
    pub(crate) fn divert(
        &self,
        to: &AddressOf<A>,
        payload: &mut OutgoingOf<A>,
    ) -> Result<(), Refused> {
        match self.is_closed() {
            true => Err(Refused::Closed),
            false => to.vtable.try_push(payload, to.place(), Urgency::Now),
        }
    }
}
