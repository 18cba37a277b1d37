//! Claims of messages on the bytes of a pool that bounds them.

use greenroom_queue::permits::Refused;

use super::{Core, Key, Urgency};
use crate::{
    Actor,
    delivery::Extra,
    pool::{
        bytes::{ByteRoom, Claim},
        outgoing::{Outgoing, OutgoingOf},
    },
};

impl<A: Actor, K: Key> Core<A, K> {
    /// Gives a message its claim, if bytes are bounded and it has none.
    pub(crate) fn try_claim(&self, payload: &mut OutgoingOf<A>) -> Result<(), Refused> {
        let (Some(bytes), Some(message)) = (&self.settings.derived.bytes, &payload.message) else {
            return Ok(());
        };
        if payload.extra.as_ref().is_some_and(|extra| extra.claim.is_some()) {
            return Ok(());
        }
        let claim = bytes.try_claim(bytes.units_of(message))?;
        has_claimed(payload, claim);
        Ok(())
    }

    /// What a message has to claim before it waits, if bytes are bounded.
    pub(super) fn to_claim(&self, payload: &OutgoingOf<A>) -> Option<(&ByteRoom, u32)> {
        let bytes = self.settings.derived.bytes.as_ref()?;
        Some((&***bytes, bytes.units_of(payload.message.as_ref()?)))
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

/// The message has its bytes.
pub(super) fn has_claimed<M, R, E>(payload: &mut Outgoing<M, R, E>, claim: Claim) {
    payload.extra.get_or_insert_with(Extra::without_port).claim = Some(claim);
}
