//! Messages that a policy gives to one worker, in the sender's task.

use std::{
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
};

use super::{Core, Queued, Urgency};
use crate::{
    Actor,
    pool::{
        discard::discard,
        mailbox::Mailbox,
        parcel::{Parcel, ParcelOf},
        permits::{Closed, Refused},
        policy::{About, Choice, Crew, Member, Members},
        seat::Status,
    },
};

/// How often a policy is asked again when the worker that it named has gone.
const CHOICES: u32 = 3;

/// The live workers, in order. Made anew when one has come or gone.
pub(crate) struct CrewList<A: Actor, K> {
    members: Box<[Arc<Mailbox<A, K>>]>,
}

impl<A: Actor, K> Default for CrewList<A, K> {
    fn default() -> Self {
        Self { members: Box::default() }
    }
}

impl<A: Actor, K> Members for CrewList<A, K> {
    fn len(&self) -> usize {
        self.members.len()
    }

    fn member(&self, place: usize) -> Member {
        let mailbox = &self.members[place];
        Member {
            slot: mailbox.slot,
            waiting: mailbox.waiting(),
            in_hand: mailbox.in_hand(),
            capacity: mailbox.capacity(),
        }
    }
}

/// What a choice comes to.
enum Chosen<A: Actor, K> {
    One(Arc<Mailbox<A, K>>),
    Several(Vec<Arc<Mailbox<A, K>>>),
    Any,
    Hold,
    Refused,
    /// The worker that was named has gone.
    Gone,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Somebody has come or gone.
    pub(super) fn crew_changed(&self) {
        self.crew_is_old.store(true, Ordering::SeqCst);
    }

    fn crew(&self) -> Arc<CrewList<A, K>> {
        if self.crew_is_old.swap(false, Ordering::SeqCst) {
            let roster = self.roster.lock();
            let live = roster.members().iter().filter_map(|slot| self.member_mailbox(*slot, true));
            *self.crew.write() = Arc::new(CrewList { members: live.collect() });
        }
        self.crew.read().clone()
    }

    /// The mailbox of a worker that is there, or is being started again. Under the lock of the roster.
    pub(crate) fn member_mailbox(&self, slot: usize, live: bool) -> Option<Arc<Mailbox<A, K>>> {
        let place = self.seats.at(slot).place.lock();
        let there = place.status == Status::Live || (!live && place.status == Status::Starting);
        there.then(|| self.mailbox(slot))
    }

    fn choose(&self, parcel: &ParcelOf<A>) -> Chosen<A, K> {
        let (Some(policy), Some(message)) = (&self.settings.dispatch, &parcel.message) else {
            return Chosen::Any;
        };
        let crew = self.crew();
        if crew.members.is_empty() {
            return Chosen::Any;
        }
        let extra = parcel.extra.as_ref();
        let about = About {
            class: parcel.class,
            is_call: extra.is_some_and(|extra| extra.port.is_some()),
            sender: extra.and_then(|extra| extra.sender()),
        };
        let choice = policy.choose(message, &about, &Crew { members: &*crew });
        let find = |slot| crew.members.iter().find(|member| member.slot == slot).cloned();
        match choice {
            Choice::At(place) => crew.members.get(place).cloned().map_or(Chosen::Gone, Chosen::One),
            Choice::Slot(slot) => find(slot).map_or(Chosen::Gone, Chosen::One),
            Choice::Several(slots) => self.several(slots.into_iter().filter_map(find).collect()),
            Choice::Any => Chosen::Any,
            Choice::Hold => Chosen::Hold,
            Choice::Refuse => Chosen::Refused,
        }
    }

    fn several(&self, mut members: Vec<Arc<Mailbox<A, K>>>) -> Chosen<A, K> {
        if self.settings.copy_for_several.is_some() && members.len() > 1 {
            return Chosen::Several(members);
        }
        members.sort_by_key(|member| member.waiting() + member.in_hand());
        members.into_iter().next().map_or(Chosen::Gone, Chosen::One)
    }

    /// Gives a message to the worker that the policy chooses, or says why not.
    pub(crate) fn try_dispatch(
        &self,
        parcel: &mut ParcelOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        for _ in 0..CHOICES {
            match self.choose(parcel) {
                Chosen::One(member) => match self.try_push_to(&member, parcel) {
                    Err(Refused::Closed) if !self.closing.load(Ordering::SeqCst) => {}
                    tried => return tried,
                },
                Chosen::Several(members) => return self.push_copies(&members, parcel, 0),
                Chosen::Any => break,
                Chosen::Hold => {
                    self.permits.try_take(1, self)?;
                    return self.hold_back(parcel).map_err(|Closed| Refused::Closed);
                }
                Chosen::Refused => return Err(Refused::ByPolicy),
                Chosen::Gone => {}
            }
        }
        self.take_and_push(parcel, (None, 0), sender, Urgency::Now)
    }

    /// As `try_dispatch`, for a message whose permit of the pool has been taken. The permit is used, unless there is an
    /// error.
    pub(crate) fn dispatch_permitted(
        &self,
        parcel: &mut ParcelOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        for _ in 0..CHOICES {
            match self.choose(parcel) {
                Chosen::One(member) => {
                    if member.try_reserve().is_err() {
                        member.reserve_anyway();
                    }
                    if self.push_to(&member, parcel).is_ok() {
                        return Ok(());
                    }
                }
                Chosen::Several(members) => return self.push_copies(&members, parcel, 1),
                Chosen::Any => break,
                Chosen::Hold => return self.hold_back(parcel).map_err(|Closed| Refused::Closed),
                Chosen::Refused => return Err(Refused::ByPolicy),
                Chosen::Gone => {}
            }
        }
        let index = self.shard_of(&(None, 0), sender);
        self.push(index, parcel, (None, 0)).map_err(|Closed| Refused::Closed)
    }

    /// Waits for room at the worker that the policy chooses.
    pub(crate) async fn dispatch_waiting(
        &self,
        parcel: &mut ParcelOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        loop {
            let Chosen::One(member) = self.choose(parcel) else {
                return self.try_dispatch(parcel, sender);
            };
            if member.reserve().await.is_ok() {
                let place = Place(Some(&*member));
                self.permits.take(self).await.map_err(|Closed| Refused::Closed)?;
                place.used();
                if self.push_to(&member, parcel).is_ok() {
                    return Ok(());
                }
                self.permits.give(1, self);
            }
            if self.permits.is_closed() {
                return Err(Refused::Closed);
            }
        }
    }

    /// A message for one worker and no other, where there is room.
    pub(crate) fn try_push_to(
        &self,
        member: &Mailbox<A, K>,
        parcel: &mut ParcelOf<A>,
    ) -> Result<(), Refused> {
        member.try_reserve()?;
        let place = Place(Some(member));
        self.permits.try_take(1, self)?;
        place.used();
        self.push_to(member, parcel).map_err(|Closed| {
            self.permits.give(1, self);
            Refused::Closed
        })
    }

    /// A copy for each, or nothing where one of them is full. So many permits have been taken before.
    fn push_copies(
        &self,
        members: &[Arc<Mailbox<A, K>>],
        parcel: &mut ParcelOf<A>,
        permits: u64,
    ) -> Result<(), Refused> {
        let Some(copy) = self.settings.copy_for_several else { return Err(Refused::Full) };
        let mut places = Vec::new();
        for member in members {
            member.try_reserve()?;
            places.push(Place(Some(&**member)));
        }
        let wanted = members.len() as u64 - permits;
        let taken = self.permits.try_take_most(wanted, self)?;
        if taken < wanted {
            self.permits.give(taken, self);
            return Err(Refused::Full);
        }
        places.into_iter().for_each(Place::used);
        let Some((last, others)) = members.split_last() else { return Err(Refused::Full) };
        for member in others {
            let message = parcel.message.as_ref().map(copy);
            let mut one = Parcel { message, extra: None, class: parcel.class };
            if self.push_to(member, &mut one).is_err() {
                self.permits.give(1, self);
                discard(one.message);
            }
        }
        self.push_to(last, parcel).map_err(|Closed| {
            self.permits.give(1, self);
            Refused::Closed
        })
    }

    /// Keeps a message, whose permit has been taken, until somebody joins.
    fn hold_back(&self, parcel: &mut ParcelOf<A>) -> Result<(), Closed> {
        let Some(message) = parcel.message.take() else { return Err(Closed) };
        let extra = parcel.extra.take();
        let class = parcel.class;
        let mut held = self.held.lock();
        self.tally.accepted.fetch_add(1, Ordering::Relaxed);
        held.push_back(Queued::<A, K> { message, extra, key: None, hash: 0, class });
        Ok(())
    }

    /// Asks the policy again about what it has held back. Where it panics, the message is for anybody.
    pub(super) fn ask_again(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        for entry in held {
            let mut parcel =
                Parcel { message: Some(entry.message), extra: entry.extra, class: entry.class };
            let chosen = catch_unwind(AssertUnwindSafe(|| self.choose(&parcel)));
            let chosen = chosen.unwrap_or_else(|panic| {
                discard(panic);
                Chosen::Any
            });
            self.place_again(chosen, &mut parcel);
        }
    }

    fn place_again(&self, chosen: Chosen<A, K>, parcel: &mut ParcelOf<A>) {
        // It has been counted as accepted when it was held back.
        self.tally.accepted.fetch_sub(1, Ordering::Relaxed);
        let placed = match chosen {
            Chosen::Hold => self.hold_back(parcel).is_ok(),
            Chosen::One(member) => {
                member.reserve_anyway();
                self.push_to(&member, parcel).is_ok()
            }
            Chosen::Several(_) | Chosen::Any | Chosen::Refused | Chosen::Gone => false,
        };
        if !placed && self.push(0, parcel, (None, 0)).is_err() {
            let _ = self.hold_back(parcel);
        }
    }
}

/// A place in a mailbox that is given back unless it is used.
struct Place<'a, A: Actor, K>(Option<&'a Mailbox<A, K>>);

impl<A: Actor, K> Place<'_, A, K> {
    fn used(mut self) {
        self.0 = None;
    }
}

impl<A: Actor, K> Drop for Place<'_, A, K> {
    fn drop(&mut self) {
        if let Some(mailbox) = self.0 {
            mailbox.give_back();
        }
    }
}
