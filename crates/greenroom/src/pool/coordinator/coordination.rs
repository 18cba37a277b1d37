//! What a pool knows of its coordinator, and tells it.

use std::{
    any::Any,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{PoolNotice, ears::Ears};
use crate::{
    Actor, Address, AnyAddress, Class, ExitReason, Stop,
    any_address::Erased,
    life::{self, Alive, Signal},
    pool::{core::Core, parcel::ParcelOf, permits::Refused},
};

/// How long a coordinator may take to hear of the end of its pool, what it has in hand included. Then it is dropped at its
/// next await.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Under a flood every message finds no room; a coordinator that acts on it needs to hear it some times a second.
const SATURATED_EVERY: Duration = Duration::from_millis(100);

/// The coordinator, as the pool sees it.
pub(crate) struct Coordination<A: Actor> {
    pub(super) coordinator: AnyAddress,
    /// The pool, as the one who rings.
    pub(super) bell: AnyAddress,
    pub(super) ears: Arc<Ears>,
    /// Where urgent messages go, where they are not the workers'.
    pub(super) urgent: Option<AddressOf<A>>,
    /// The coordinator's address, which keeps it running as long as there is a pool.
    pub(super) _alive: Box<dyn Any + Send + Sync>,
    pub(super) saturated: Saturated,
}

pub(super) type AddressOf<A> =
    Address<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

impl<A: Actor> Coordination<A> {
    fn tell(&self, notice: PoolNotice) {
        if self.ears.put(notice) {
            let (who, reason) = (self.bell.clone(), ExitReason::Normal);
            self.coordinator.signal(Signal::Down { who, reason });
        }
    }

    /// The pool has ended: the coordinator hears of it and ends too, and nobody hears of that.
    fn say_good_bye(&self, reason: ExitReason, runtime: &tokio::runtime::Handle) {
        life::demonitor(&self.bell, &self.coordinator);
        if self.coordinator.exit_reason().is_none() {
            self.tell(PoolNotice::Stopped { reason });
            runtime.spawn(see_off(self.coordinator.clone()));
        }
    }
}

/// Waits for the end of a coordinator that was told of the end of its pool, and sees to it that it comes.
async fn see_off(coordinator: AnyAddress) {
    if tokio::time::timeout(LAST_WORDS, coordinator.ended()).await.is_err() {
        let _ = coordinator.stop(Stop::within(Duration::ZERO)).await;
    }
}

/// When a pool that has no room may say so next.
pub(super) struct Saturated {
    since: Instant,
    /// In milliseconds since then.
    due: AtomicU64,
}

impl Saturated {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, due: AtomicU64::new(0) }
    }

    /// True for one of those who ask within the same time.
    fn may_say(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.since).as_millis() as u64;
        let due = self.due.load(Ordering::Relaxed);
        let next = now + SATURATED_EVERY.as_millis() as u64;
        now >= due
            && self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// A worker handles messages. Not under a lock.
    pub(crate) fn tell_up(&self, slot: usize) {
        if let Some(coordination) = self.coordination.get() {
            coordination.tell(PoolNotice::WorkerUp { slot });
        }
    }

    /// A worker that was up does not. Not under a lock.
    pub(crate) fn tell_down(&self, slot: usize, reason: &ExitReason) {
        if let Some(coordination) = self.coordination.get() {
            coordination.tell(PoolNotice::WorkerDown { slot, reason: reason.clone() });
        }
    }

    /// A message has found no room.
    #[cold]
    pub(crate) fn tell_saturated(&self) {
        if let Some(coordination) = self.coordination.get()
            && coordination.saturated.may_say(Instant::now())
        {
            coordination.tell(PoolNotice::Saturated);
        }
    }

    /// The pool has ended. Called once.
    pub(crate) fn dismiss_coordinator(&self, reason: &ExitReason) {
        if let Some(coordination) = self.coordination.get() {
            coordination.say_good_bye(reason.clone(), &self.runtime);
        }
    }

    /// Why the pool is to end, where this signal tells the end of its coordinator.
    pub(crate) fn end_of_coordinator(&self, signal: &Signal<AnyAddress>) -> Option<ExitReason> {
        let Signal::Down { who, reason } = signal else { return None };
        let coordination = self.coordination.get()?;
        (*who == coordination.coordinator).then(|| reason.clone())
    }

    /// Where this message goes instead of to a worker. One look at the class of one that is not urgent.
    #[inline]
    pub(crate) fn diverted(&self, parcel: &ParcelOf<A>) -> Option<&AddressOf<A>> {
        match parcel.class {
            Class::Urgent => self.coordination.get()?.urgent.as_ref(),
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
            false => to.door.try_push(parcel, to.place(), crate::pool::Urgency::Now),
        }
    }
}
