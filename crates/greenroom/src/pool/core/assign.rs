//! Messages that stick to the worker that owns their table slot, in the sender's task (see
//! [`sticky`](crate::pool::sticky)).

use std::{pin::pin, sync::Arc};

use greenroom_queue::permits::Refused;

use super::{
    Core, Key, Urgency,
    dispatch::{hold, push_to_any},
    evict::{evict, freed, make_room_at, try_permit},
    push::take_and_push,
    room::{MailboxPlace, wait_for_permit},
};
use crate::pool::frame::gate::dead_letter_if_ruined;
use crate::{
    Actor,
    address::vtable::BoxFuture,
    delivery::Waiter,
    pool::{
        handoff::reentrancy::slot_at_work,
        membership::mailbox::{Mailbox, tags::Unplaced},
        outgoing::{Outgoing, OutgoingOf},
        push::{Push, Tables},
        sticky::{LIMBO, NOBODY, Sticky},
    },
};

/// A pool that pushes messages to the owners of their keys, by its routing table.
pub(crate) struct ByTable;

impl<A: Actor, K: Key> Push<A, K, Core<A, K>> for ByTable {
    fn try_place(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let sticky = pool.sticky()?;
        let Some(tag) = tag(pool, sticky, payload)? else {
            return take_and_push(pool, payload, (None, 0), sender, Urgency::Now);
        };
        loop {
            let sticks = match holder(pool, sticky, payload, tag)? {
                Some(member) => try_assign_to(pool, sticky, &member, payload, tag)?,
                None => {
                    let permit = try_permit(pool)?;
                    let held = hold_tagged(pool, sticky, payload, tag)?;
                    held.then(|| permit.used()).is_some()
                }
            };
            if sticks {
                return Ok(());
            }
        }
    }

    fn place_permitted(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let sticky = pool.sticky()?;
        let Some(tag) = tag(pool, sticky, payload)? else {
            return push_to_any(pool, payload, sender);
        };
        loop {
            let sticks = match holder(pool, sticky, payload, tag)? {
                Some(member) => {
                    if member.try_reserve().is_err() {
                        member.reserve_anyway();
                    }
                    assign_in_place(pool, sticky, &member, payload, tag)?
                }
                None => hold_tagged(pool, sticky, payload, tag)?,
            };
            if sticks {
                return Ok(());
            }
        }
    }

    /// Waits for room at the worker that owns the key, and in the pool.
    fn place_waiting<'a>(
        &self,
        pool: &'a Core<A, K>,
        payload: &'a mut OutgoingOf<A>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), Refused>> {
        Box::pin(async move {
            let sticky = pool.sticky()?;
            let Some(tag) = tag(pool, sticky, payload)? else {
                let permit = wait_for_permit(pool).await?;
                push_to_any(pool, payload, sender)?;
                permit.used();
                return Ok(());
            };
            loop {
                let Some(member) = holder(pool, sticky, payload, tag)? else {
                    let permit = wait_for_permit(pool).await?;
                    if hold_tagged(pool, sticky, payload, tag)? {
                        permit.used();
                        return Ok(());
                    }
                    continue;
                };
                if !reserve_while_here(sticky, &member, tag).await {
                    may_try_again(pool)?;
                    continue;
                }
                let place = MailboxPlace(Some(&*member));
                let permit = wait_for_permit(pool).await?;
                place.used();
                if assign_in_place(pool, sticky, &member, payload, tag)? {
                    permit.used();
                    return Ok(());
                }
            }
        })
    }

    /// The oldest message at the worker, or in the pool, makes room.
    fn make_room(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let sticky = pool.sticky()?;
        let holder = match tag(pool, sticky, payload)? {
            Some(tag) => holder(pool, sticky, payload, tag)?.map(|member| (tag, member)),
            None => None,
        };
        let permit = match &holder {
            Some((_, member)) => make_room_at(pool, member, sender)?,
            None => freed(pool, evict(pool, pool.shard_of(&(None, 0), sender)))?,
        };
        let sticks = match &holder {
            Some((tag, member)) => assign_in_place(pool, sticky, member, payload, *tag)?,
            None => false,
        };
        if !sticks {
            self.place_permitted(pool, payload, sender)?;
        }
        permit.used();
        Ok(())
    }

    fn is_assigned_to(&self, pool: &Core<A, K>, payload: &OutgoingOf<A>, slot: usize) -> bool {
        let Ok(sticky) = pool.sticky() else { return false };
        tag_of(sticky, payload).is_some_and(|tag| sticky.is_assigned_to(tag, slot as u32))
    }

    fn tables(&self) -> Option<&dyn Tables<A, K, Core<A, K>>> {
        Some(self)
    }
}

impl<A: Actor, K: Key> Core<A, K> {
    fn sticky(&self) -> Result<&Sticky<A::Message>, Refused> {
        self.routing.sticky.as_deref().ok_or(Refused::Closed)
    }
}

/// The tag of a message, if it has a key; refused if it must have one. Runs user code.
fn tag<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    payload: &OutgoingOf<A>,
) -> Result<Option<u32>, Refused> {
    match tag_of(sticky, payload) {
        None if core.frame.config.keys.key_required => Err(Refused::KeyRequired),
        tag => Ok(tag),
    }
}

/// The mailbox for the messages of a table slot. `None` if the table slot has no owner. Never the
/// mailbox of a worker that itself waits for the reply: it would wait forever.
fn holder<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    payload: &mut OutgoingOf<A>,
    tag: u32,
) -> Result<Option<Arc<Mailbox<A, K>>>, Refused> {
    if let Some(extra) = &mut payload.extra
        && extra.waiter != Waiter::Other
        && let Some(caller) = slot_at_work(core.identity())
        && sticky.is_assigned_to(tag, caller as u32)
    {
        extra.waiter = Waiter::Chosen;
        return Err(Refused::ByPolicy);
    }
    let found = match sticky.owner(tag) {
        NOBODY => return Ok(None),
        LIMBO => None,
        slot => core.mailbox_if_any(slot as usize),
    };
    if found.is_some() {
        return Ok(found);
    }
    // The slot is moving, or its worker had no mailbox yet.
    let _moves = sticky.moves.lock();
    // Pairs with the store in `refuse_later`, before `drain_mailboxes` takes this lock: it finds
    // the mailbox that is made here, or none is made. Otherwise a message would wait for a worker
    // that is never started.
    if core.queue.permits.is_closed() {
        return Err(Refused::Closed);
    }
    Ok(match sticky.owner(tag) {
        NOBODY | LIMBO => None,
        slot => Some(core.mailbox(slot as usize)),
    })
}

/// Returns false if the table slot has moved.
fn try_assign_to<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    member: &Mailbox<A, K>,
    payload: &mut OutgoingOf<A>,
    tag: u32,
) -> Result<bool, Refused> {
    match member.try_reserve() {
        Err(Refused::Closed) => return may_try_again(core),
        reserved => reserved?,
    }
    let place = MailboxPlace(Some(member));
    let permit = try_permit(core)?;
    place.used();
    let sticks = assign_in_place(core, sticky, member, payload, tag)?;
    if sticks {
        permit.used();
    }
    Ok(sticks)
}

/// Queues a message that has a place at its worker; an unused place is given back. Returns false if
/// the table slot has moved.
fn assign_in_place<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    member: &Mailbox<A, K>,
    payload: &mut OutgoingOf<A>,
    tag: u32,
) -> Result<bool, Refused> {
    let is_here = || sticky.owner(tag) == member.slot as u32;
    match member.push_tagged(payload, tag, is_here, |number| core.stamp(number)) {
        Ok(()) => {
            core.queue.wake.call(member.slot, &core.frame.clock.watchdog);
            dead_letter_if_ruined(core);
            Ok(true)
        }
        Err(Unplaced::Closed) => {
            member.give_back();
            Err(Refused::Closed)
        }
        Err(Unplaced::Moved) => {
            member.give_back();
            may_try_again(core)
        }
    }
}

/// Returns false, which means to try again, or an error if the pool no longer accepts messages.
fn may_try_again<A: Actor, K: Key>(core: &Core<A, K>) -> Result<bool, Refused> {
    match core.queue.permits.is_closed() {
        true => Err(Refused::Closed),
        false => Ok(false),
    }
}

/// Holds a message of a table slot without an owner until a worker joins; its permit of the pool
/// has been taken. Returns false if the table slot has an owner now.
fn hold_tagged<A: Actor, K: Key>(
    core: &Core<A, K>,
    sticky: &Sticky<A::Message>,
    payload: &mut OutgoingOf<A>,
    tag: u32,
) -> Result<bool, Refused> {
    let held = hold(core, payload, tag, || sticky.owner(tag) == NOBODY)?;
    if held {
        dead_letter_if_ruined(core);
    }
    Ok(held)
}

/// Waits for a place in this mailbox while the table slot is there. Returns false if it is no
/// longer there, or the worker has gone.
async fn reserve_while_here<A: Actor, K>(
    sticky: &Sticky<A::Message>,
    member: &Mailbox<A, K>,
    tag: u32,
) -> bool {
    let mut reserved = pin!(member.reserve());
    loop {
        // Enabled before the owner is checked, so that no later move is missed.
        let mut moved = pin!(sticky.moved.notified());
        moved.as_mut().enable();
        if sticky.owner(tag) != member.slot as u32 {
            return false;
        }
        tokio::select! {
            biased;
            reserved = &mut reserved => return reserved.is_ok(),
            () = moved => {}
        }
    }
}

/// Runs user code.
fn tag_of<M, R, E>(sticky: &Sticky<M>, payload: &Outgoing<M, R, E>) -> Option<u32> {
    payload.message.as_ref().and_then(|message| sticky.tag(message))
}
