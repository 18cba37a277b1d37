//! Claims of messages on the bytes of a pool that bounds them.

use std::hash::Hash;

use super::{Core, ExtraOf, Urgency};
use crate::{
    Actor,
    pool::{
        parcel::ParcelOf,
        permits::{Closed, Refused},
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Gives a message its claim, if bytes are bounded and it has none.
    pub(crate) fn try_claim(&self, parcel: &mut ParcelOf<A>) -> Result<(), Refused> {
        let (Some(bytes), Some(message)) = (&self.settings.derived.bytes, &parcel.message) else {
            return Ok(());
        };
        if parcel.extra.as_ref().is_some_and(|extra| extra.admission.claim.is_some()) {
            return Ok(());
        }
        let claim = bytes.try_claim(message)?;
        parcel.extra.get_or_insert_with(|| ExtraOf::<A>::new(None)).admission.claim = Some(claim);
        Ok(())
    }

    /// As `try_claim`, and waits if there is no room for it.
    pub(crate) async fn claim(&self, parcel: &mut ParcelOf<A>) -> Result<(), Closed> {
        let Some(bytes) = &self.settings.derived.bytes else { return Ok(()) };
        let Some(units) = parcel.message.as_ref().map(|message| bytes.units_of(message)) else {
            return Ok(());
        };
        let claim = bytes.claim(units, || self.queue.permits.is_closed()).await?;
        parcel.extra.get_or_insert_with(|| ExtraOf::<A>::new(None)).admission.claim = Some(claim);
        Ok(())
    }

    /// Queues a message if there is room for it, in a pool with further conditions.
    pub(crate) fn try_place_weighed(
        &self,
        parcel: &mut ParcelOf<A>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        self.try_claim(parcel)?;
        let placed = self.try_place_claimed(parcel, sender, urgency);
        if placed.is_err() {
            // Others may have its room while it waits for what it has not.
            parcel.extra.iter_mut().for_each(|extra| extra.admission.claim = None);
        }
        placed
    }

    /// As `try_place_weighed`, for a message that has its claim.
    pub(super) fn try_place_claimed(
        &self,
        parcel: &mut ParcelOf<A>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if self.settings.functions.dispatch.is_some() {
            return self.try_dispatch(parcel, sender);
        }
        let key = self.key(parcel);
        self.take_and_push(parcel, key, sender, urgency)
    }
}
