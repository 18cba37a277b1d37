//! Messages that stick to the worker that has their table slot, in the sender's task
//! (see [`sticky`](crate::pool::sticky)).

use std::{
    hash::Hash,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::permits::{Closed, Refused};

use super::{
    Core, Queued, Urgency,
    dispatch::{MailboxPlace, PoolPermit, entry_of},
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
        push::{Migrated, Push},
        sticky::{LIMBO, Moves, NOBODY, Sticky},
    },
};

/// A pool that pushes to the owners of keys, as the table of its routing has them.
pub(crate) struct ByTable;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Push<A, K, Core<A, K>> for ByTable {
    fn try_place(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let sticky = pool.sticky()?;
        let Some(tag) = pool.tag(sticky, payload)? else {
            return pool.take_and_push(payload, (None, 0), sender, Urgency::Now);
        };
        loop {
            let sticks = match pool.holder(sticky, payload, tag)? {
                Some(member) => pool.try_assign_to(sticky, &member, payload, tag)?,
                None => {
                    pool.queue.permits.try_take(1, pool)?;
                    let permit = PoolPermit(Some(pool));
                    let held = pool.hold_tagged(sticky, payload, tag)?;
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
        let Some(tag) = pool.tag(sticky, payload)? else {
            return pool.push_to_any(payload, sender);
        };
        loop {
            let sticks = match pool.holder(sticky, payload, tag)? {
                Some(member) => {
                    if member.try_reserve().is_err() {
                        member.reserve_anyway();
                    }
                    pool.assign_in_place(sticky, &member, payload, tag)?
                }
                None => pool.hold_tagged(sticky, payload, tag)?,
            };
            if sticks {
                return Ok(());
            }
        }
    }

    /// Waits for room at the worker that has the key, and in the pool.
    fn place_waiting<'a>(
        &self,
        pool: &'a Core<A, K>,
        payload: &'a mut OutgoingOf<A>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), Refused>> {
        Box::pin(async move {
            let sticky = pool.sticky()?;
            let Some(tag) = pool.tag(sticky, payload)? else {
                let permit = pool.wait_for_permit().await?;
                pool.push_to_any(payload, sender)?;
                permit.used();
                return Ok(());
            };
            loop {
                let Some(member) = pool.holder(sticky, payload, tag)? else {
                    let permit = pool.wait_for_permit().await?;
                    if pool.hold_tagged(sticky, payload, tag)? {
                        permit.used();
                        return Ok(());
                    }
                    continue;
                };
                if !reserve_while_here(sticky, &member, tag).await {
                    pool.may_try_again()?;
                    continue;
                }
                let place = MailboxPlace(Some(&*member));
                let permit = pool.wait_for_permit().await?;
                place.used();
                if pool.assign_in_place(sticky, &member, payload, tag)? {
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
        let holder = match pool.tag(sticky, payload)? {
            Some(tag) => pool.holder(sticky, payload, tag)?.map(|member| (tag, member)),
            None => None,
        };
        let permit = match &holder {
            Some((_, member)) => pool.make_room_at(member, sender)?,
            None => pool.freed(pool.evict(pool.shard_of(&(None, 0), sender)))?,
        };
        let sticks = match &holder {
            Some((tag, member)) => pool.assign_in_place(sticky, member, payload, *tag)?,
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

    fn takes_keys(&self, pool: &Core<A, K>, slot: usize) -> Migrated<A, K> {
        pool.change_table(|moves| moves.table.join(slot as u32))
    }

    fn gives_keys(&self, pool: &Core<A, K>, slot: usize) -> Migrated<A, K> {
        pool.change_table(|moves| moves.table.leave(slot as u32))
    }

    fn migrate_deferred(
        &self,
        pool: &Core<A, K>,
        moves: &mut Moves,
        migrated: &mut Migrated<A, K>,
    ) {
        pool.make_deferred_moves(moves, migrated);
    }

    fn migrated(&self, pool: &Core<A, K>, migrated: Migrated<A, K>) {
        pool.wake_migrated(migrated);
    }

    fn hand_over(&self, pool: &Core<A, K>, slot: usize) -> bool {
        pool.hand_over_tag(slot);
        true
    }

    fn park(
        &self,
        pool: &Core<A, K>,
        slot: usize,
        entry: Queued<A, K>,
        after: Duration,
    ) -> Result<(), Queued<A, K>> {
        pool.park_tagged(slot, entry, after)
    }

    fn wake_tag(&self, pool: &Core<A, K>, tag: u32) {
        pool.tag_is_due(tag);
    }

    fn notify_held(&self, pool: &Core<A, K>, slot: u32) {
        pool.tell_held(slot);
    }

    fn held_for_others(&self, pool: &Core<A, K>) -> usize {
        let mailboxes = (0..pool.desks.len()).filter_map(|slot| pool.mailbox_if_any(slot));
        mailboxes.map(|mailbox| mailbox.held()).sum()
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    fn sticky(&self) -> Result<&Sticky<A::Message>, Refused> {
        self.routing.sticky.as_deref().ok_or(Refused::Closed)
    }

    /// The tag of a message, if it has a key; refused if it must have one. Runs user code.
    fn tag(
        &self,
        sticky: &Sticky<A::Message>,
        payload: &OutgoingOf<A>,
    ) -> Result<Option<u32>, Refused> {
        match tag_of(sticky, payload) {
            None if self.frame.config.keys.key_required => Err(Refused::KeyRequired),
            tag => Ok(tag),
        }
    }

    async fn wait_for_permit(&self) -> Result<PoolPermit<'_, A, K>, Refused> {
        self.await_permit().await.map_err(|Closed| Refused::Closed)?;
        Ok(PoolPermit(Some(self)))
    }

    /// The mailbox with the messages of a table slot. `None` if the table slot has no owner. Never
    /// the mailbox of a worker that itself waits for the reply: it would wait for ever.
    fn holder(
        &self,
        sticky: &Sticky<A::Message>,
        payload: &mut OutgoingOf<A>,
        tag: u32,
    ) -> Result<Option<Arc<Mailbox<A, K>>>, Refused> {
        if let Some(extra) = &mut payload.extra
            && extra.waiter != Waiter::Other
            && let Some(caller) = slot_at_work(self.identity())
            && sticky.is_assigned_to(tag, caller as u32)
        {
            extra.waiter = Waiter::Chosen;
            return Err(Refused::ByPolicy);
        }
        let found = match sticky.owner(tag) {
            NOBODY => return Ok(None),
            LIMBO => None,
            slot => self.mailbox_if_any(slot as usize),
        };
        if found.is_some() {
            return Ok(found);
        }
        // It is on its way, or its worker had no mailbox yet.
        let _moves = sticky.moves.lock();
        // Pairs with the store in `refuse_later`, before `drain_mailboxes` takes this lock: it
        // finds the mailbox that is made here, or none is made. Otherwise a message waits for a
        // worker that nobody starts.
        if self.queue.permits.is_closed() {
            return Err(Refused::Closed);
        }
        Ok(match sticky.owner(tag) {
            NOBODY | LIMBO => None,
            slot => Some(self.mailbox(slot as usize)),
        })
    }

    /// False if the table slot has moved.
    fn try_assign_to(
        &self,
        sticky: &Sticky<A::Message>,
        member: &Mailbox<A, K>,
        payload: &mut OutgoingOf<A>,
        tag: u32,
    ) -> Result<bool, Refused> {
        match member.try_reserve() {
            Err(Refused::Closed) => return self.may_try_again(),
            reserved => reserved?,
        }
        let place = MailboxPlace(Some(member));
        self.queue.permits.try_take(1, self)?;
        place.used();
        let permit = PoolPermit(Some(self));
        let sticks = self.assign_in_place(sticky, member, payload, tag)?;
        if sticks {
            permit.used();
        }
        Ok(sticks)
    }

    /// Queues a message that has a place at its worker; an unused place is given back. False if the
    /// table slot has moved.
    fn assign_in_place(
        &self,
        sticky: &Sticky<A::Message>,
        member: &Mailbox<A, K>,
        payload: &mut OutgoingOf<A>,
        tag: u32,
    ) -> Result<bool, Refused> {
        let is_here = || sticky.owner(tag) == member.slot as u32;
        match member.push_tagged(payload, tag, is_here, |number| self.stamp(number)) {
            Ok(()) => {
                self.queue.wake.call(member.slot, &self.frame.clock.watchdog);
                dead_letter_if_ruined(self);
                Ok(true)
            }
            Err(Unplaced::Closed) => {
                member.give_back();
                Err(Refused::Closed)
            }
            Err(Unplaced::Moved) => {
                member.give_back();
                self.may_try_again()
            }
        }
    }

    /// Not in a pool that accepts nothing any more.
    fn may_try_again(&self) -> Result<bool, Refused> {
        match self.queue.permits.is_closed() {
            true => Err(Refused::Closed),
            false => Ok(false),
        }
    }

    /// Keeps a message of a table slot without an owner until a worker joins; its permit of the
    /// pool has been taken. False if the table slot has an owner now.
    fn hold_tagged(
        &self,
        sticky: &Sticky<A::Message>,
        payload: &mut OutgoingOf<A>,
        tag: u32,
    ) -> Result<bool, Refused> {
        let mut held = self.routing.held.lock();
        // Pairs with the stores in `close` and `refuse_later`, before held messages are drained
        // under this lock: otherwise a message is held that is never given back.
        if self.frame.lifecycle.closing.load(Ordering::SeqCst) || self.queue.permits.is_closed() {
            return Err(Refused::Closed);
        }
        if sticky.owner(tag) != NOBODY {
            return Ok(false);
        }
        let Some(mut entry) = entry_of::<A, K>(payload, self.stamp(0)) else {
            return Err(Refused::Closed);
        };
        entry.hash = tag;
        self.frame.telemetry.counters.accepted.fetch_add(1, Ordering::Relaxed);
        held.push_back(entry);
        drop(held);
        dead_letter_if_ruined(self);
        Ok(true)
    }
}

/// Waits for a place in this mailbox, as long as the table slot is there. False if it is not, or
/// the worker has gone.
async fn reserve_while_here<A: Actor, K>(
    sticky: &Sticky<A::Message>,
    member: &Mailbox<A, K>,
    tag: u32,
) -> bool {
    let mut reserved = pin!(member.reserve());
    loop {
        // Before the look at the owner: a move from then on is heard of.
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
