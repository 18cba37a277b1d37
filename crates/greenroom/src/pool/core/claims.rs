//! Messages that are not simply queued: the bytes of the pool are bounded and a message needs its
//! claim on them, or a policy or a sticky table chooses its worker.

use greenroom_queue::permits::Refused;

use super::{Core, Key, Urgency, push::take_and_push};
use crate::{
    Actor,
    delivery::Extra,
    pool::{
        bytes::{ByteRoom, Claim},
        outgoing::{Outgoing, OutgoingOf},
    },
};

/// Gives a message its claim, if bytes are bounded and it has no claim yet.
pub(crate) fn try_claim<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    let (Some(bytes), Some(message)) = (&core.settings.derived.bytes, &payload.message) else {
        return Ok(());
    };
    if payload.extra.as_ref().is_some_and(|extra| extra.claim.is_some()) {
        return Ok(());
    }
    let claim = bytes.try_claim(bytes.units_of(message))?;
    has_claimed(payload, claim);
    Ok(())
}

/// The claim that a message needs before it waits, if bytes are bounded.
pub(super) fn to_claim<'a, A: Actor, K: Key>(
    core: &'a Core<A, K>,
    payload: &OutgoingOf<A>,
) -> Option<(&'a ByteRoom, u32)> {
    let bytes = core.settings.derived.bytes.as_ref()?;
    Some((&***bytes, bytes.units_of(payload.message.as_ref()?)))
}

/// Queues a message if there is room for it and its bytes, or gives it to the worker that is chosen
/// for it.
pub(crate) fn try_place_checked<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    try_claim(core, payload)?;
    let placed = try_place_claimed(core, payload, sender, urgency);
    if placed.is_err() {
        // Other messages may use its bytes while it waits for room.
        payload.extra.iter_mut().for_each(|extra| extra.claim = None);
    }
    placed
}

/// Like `try_place_checked`, for a message that has its claim.
pub(super) fn try_place_claimed<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    if let Some(push) = &core.push {
        return push.try_place(core, payload, sender);
    }
    let key = core.key(payload);
    take_and_push(core, payload, key, sender, urgency)
}

/// Notes that the message has its bytes.
pub(super) fn has_claimed<M, R, E>(payload: &mut Outgoing<M, R, E>, claim: Claim) {
    payload.extra.get_or_insert_with(Extra::without_port).claim = Some(claim);
}
