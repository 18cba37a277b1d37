//! Claims of messages on the bytes of a pool that bounds them.

use std::hash::Hash;

use greenroom_queue::permits::{Closed, Refused};

use super::{Core, ExtraOf, Urgency};
use crate::{Actor, pool::outgoing::OutgoingOf};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Gives a message its claim, if bytes are bounded and it has none.
    pub(crate) fn try_claim(&self, payload: &mut OutgoingOf<A>) -> Result<(), Refused> {
        let (Some(bytes), Some(message)) = (&self.settings.derived.bytes, &payload.message) else {
            return Ok(());
        };
        if payload.extra.as_ref().is_some_and(|extra| extra.claim.is_some()) {
            return Ok(());
        }
        let claim = bytes.try_claim(message)?;
        payload.extra.get_or_insert_with(|| ExtraOf::<A>::new(None)).claim = Some(claim);
        Ok(())
    }

    /// As `try_claim`, and waits if there is no room for it.
    pub(crate) async fn claim(&self, payload: &mut OutgoingOf<A>) -> Result<(), Closed> {
        let Some(bytes) = &self.settings.derived.bytes else { return Ok(()) };
        let Some(units) = payload.message.as_ref().map(|message| bytes.units_of(message)) else {
            return Ok(());
        };
        let claim = bytes.claim(units, || self.queue.permits.is_closed()).await?;
        payload.extra.get_or_insert_with(|| ExtraOf::<A>::new(None)).claim = Some(claim);
        Ok(())
    }

    /// Queues a message if there is room for it, in a pool with further conditions.
    pub(crate) fn try_place_weighed(
        &self,
        payload: &mut OutgoingOf<A>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        self.try_claim(payload)?;
        let placed = self.try_place_claimed(payload, sender, urgency);
        if placed.is_err() {
            // Others may have its room while it waits for what it has not.
            payload.extra.iter_mut().for_each(|extra| extra.claim = None);
        }
        placed
    }

    /// As `try_place_weighed`, for a message that has its claim.
    pub(super) fn try_place_claimed(
        &self,
        payload: &mut OutgoingOf<A>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if let Some(push) = &self.push {
            return push.try_place(self, payload, sender);
        }
        let key = self.key(payload);
        self.take_and_push(payload, key, sender, urgency)
    }
}
