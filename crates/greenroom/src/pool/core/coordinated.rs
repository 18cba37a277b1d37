//! What a coordinator hears of its pool, and what it is given in place of the workers.

use std::hash::Hash;

use tokio::time::Instant;

use super::Core;
use crate::{
    Actor, AnyAddress, Class, ExitReason,
    any_address::Erased,
    life::Signal,
    pool::{
        coordinator::{PoolNotice, coordination::AddressOf},
        parcel::ParcelOf,
        permits::Refused,
        urgency::Urgency,
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// A worker handles messages. Not under a lock.
    pub(crate) fn tell_up(&self, slot: usize) {
        if let Some(coordination) = self.controllers.coordination.get() {
            coordination.tell(PoolNotice::WorkerUp { slot });
        }
    }

    /// A worker that was up does not. Not under a lock.
    pub(crate) fn tell_down(&self, slot: usize, reason: &ExitReason) {
        if let Some(coordination) = self.controllers.coordination.get() {
            coordination.tell(PoolNotice::WorkerDown { slot, reason: reason.clone() });
        }
    }

    /// A message has found no room.
    #[cold]
    pub(crate) fn tell_saturated(&self) {
        if let Some(coordination) = self.controllers.coordination.get()
            && coordination.saturated.may_say(Instant::now())
        {
            coordination.tell(PoolNotice::Saturated);
        }
    }

    /// The pool has ended. Called once.
    pub(crate) fn dismiss_coordinator(&self, reason: &ExitReason) {
        if let Some(coordination) = self.controllers.coordination.get() {
            coordination.say_good_bye(reason.clone(), &self.env.runtime);
        }
    }

    /// Why the pool is to end, where this signal tells the end of its coordinator.
    pub(crate) fn end_of_coordinator(&self, signal: &Signal<AnyAddress>) -> Option<ExitReason> {
        let Signal::Down { who, reason } = signal else { return None };
        let coordination = self.controllers.coordination.get()?;
        (*who == coordination.coordinator).then(|| reason.clone())
    }

    /// Where this message goes instead of to a worker. One look at the class of one that is not urgent.
    #[inline]
    pub(crate) fn diverted(&self, parcel: &ParcelOf<A>) -> Option<&AddressOf<A>> {
        match parcel.class {
            Class::Urgent => self.controllers.coordination.get()?.urgent.as_ref(),
            _ => None,
        }
    }

    /// Queues an urgent message at the coordinator.
    #[cold]
    pub(crate) fn divert(
        &self,
        to: &AddressOf<A>,
        parcel: &mut ParcelOf<A>,
    ) -> Result<(), Refused> {
        match self.is_closed() {
            true => Err(Refused::Closed),
            false => to.door.try_push(parcel, to.place(), Urgency::Now),
        }
    }
}
