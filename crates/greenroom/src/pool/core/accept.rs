//! How a pool takes messages from addresses.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::Waker,
    time::Duration,
};

use greenroom_queue::{
    discard::discard,
    permits::{Closed, Refused},
    places::FirstMessage,
    urgency::Urgency,
};

use super::{
    Core, Hashed, Key, WayIn,
    claims::has_claimed,
    claims::{to_claim, try_claim, try_place_checked},
    evict::{overflow, overflow_of_key},
    push::{push_quietly, take_and_push},
    room::PoolPermit,
    room::{push_in_its_turn, push_keyed},
    serve::hand,
};
use crate::pool::frame::{gate::close, notify::found_full};
use crate::{
    Actor, AddressOf, NotAccepted,
    address::vtable::{BoxFuture, SenderVtable, WeakSenderVtable, push_one_by_one},
    pool::{
        builder::overflow::Overflow,
        handoff::{
            own_call::OwnCall,
            reentrancy::{ReentrancyGuard, Reentrant, slot_at_work},
            wait::HandoffWaitOf,
        },
        not_accepted::not_accepted,
        outgoing::{LendOutgoing, Outgoing, OutgoingOf},
        stop::{self, Stop},
    },
};

/// The most messages that are queued under one hold of a lock.
const RUN: usize = 64;

/// Several messages on their way into the queues. Whatever happens, unused permits are given back
/// and filled shards are announced, all at once.
struct Many<'a, A: Actor, K: Key> {
    core: &'a Core<A, K>,
    permits: u64,
    filled: u64,
}

impl<A: Actor, K: Key> Drop for Many<'_, A, K> {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.core.queue.permits.give(self.permits, self.core);
        }
        if self.filled != 0 {
            self.core.queue.wake.mark_all(self.filled);
            self.core.queue.wake.one(&self.core.frame.clock.watchdog);
        }
    }
}

impl<A: Actor, K: Key> Many<'_, A, K> {
    /// Queues some messages from the front. The key function gets a message that is still in its
    /// place, so that a panic there loses none.
    fn push(&mut self, messages: &mut VecDeque<A::Message>, sender: u32) -> Result<(), Refused> {
        if !self.core.keyed() {
            let is_late = self.core.is_late();
            let index = self.core.shard_of(&(None, 0), sender);
            let mut inbox = self.core.queue.shards[index].inbox.lock();
            if inbox.closed {
                return Err(Refused::Closed);
            }
            let stamp = |number| self.core.frame.telemetry.coarse.stamp(number, is_late);
            let most = RUN.min(self.permits as usize);
            let (run, is_first) = inbox.push_each(messages, most, stamp);
            drop(inbox);
            self.permits -= run as u64;
            self.filled |= u64::from(is_first) << index;
            return Ok(());
        }
        let key = self.core.key_of(messages.front());
        let Some(message) = messages.pop_front() else { return Err(Refused::Closed) };
        let mut payload = Outgoing::new(message, None);
        let index = self.core.shard_of(&key, sender);
        let pushed = push_quietly(self.core, index, &mut payload, key, false);
        if let Some(message) = payload.message {
            messages.push_front(message);
        }
        self.permits -= u64::from(pushed.is_ok());
        self.filled |= u64::from(pushed?) << index;
        Ok(())
    }
}

/// The result of queueing several messages.
struct PlacedMany {
    /// The number of queued messages.
    sent: usize,
    /// The pool had no room for more.
    full: bool,
}

fn why<A: Actor, K: Key>(core: &Core<A, K>, refused: Refused) -> NotAccepted {
    not_accepted(refused, || core.why_closed())
}

/// Queues an urgent message at the pool's keeper.
#[cold]
fn divert<A: Actor, K: Key>(
    core: &Core<A, K>,
    to: &AddressOf<A>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    core.frame.lifecycle.check_running().map_err(|_| Refused::Closed)?;
    to.vtable.try_push(payload, to.place(), Urgency::Now)
}

/// The path of most sends without keys: only the lock and the queue. A separate function, so that
/// it keeps nothing for the rare steps. Returns false if there is more to do; the message then
/// stays with the caller.
#[cfg_attr(not(debug_assertions), inline(always))]
fn push_fast<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
    sender: u32,
) -> bool {
    let Some(shard) = core.queue.shards.get(sender as usize & (core.queue.shards.len() - 1)) else {
        return false;
    };
    // A sender that can wait takes another path if the lock is taken.
    let Some(mut inbox) = shard.inbox.try_lock() else { return false };
    let is_fast = inbox.is_fast() && core.is_timely() && message.is_some();
    if is_fast {
        inbox.push_fast(message, (None, 0), core.frame.telemetry.coarse.coarse_stamp());
    }
    is_fast
}

#[inline(never)]
fn try_send_plain<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    match push_fast(core, message, sender) {
        true => Ok(()),
        false => try_send_slowly(core, message, sender, urgency),
    }
}

/// Like `try_send_plain`, in a pool with keys.
#[inline(never)]
fn try_send_by_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    match push_by_key(core, message) {
        Ok(()) => Ok(()),
        Err(key) => try_send_keyed(core, message, key, sender, urgency),
    }
}

/// Like `push_fast`, in a pool with keys. The key is given back if there is more to do.
#[cfg_attr(not(debug_assertions), inline(always))]
fn push_by_key<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
) -> Result<(), Hashed<K>> {
    let key = core.key(message);
    let Some(shard) = core.queue.shards.get(key.1 as usize & (core.queue.shards.len() - 1)) else {
        return Err(key);
    };
    let Some(mut inbox) = shard.inbox.try_lock() else { return Err(key) };
    if key.0.is_some() && inbox.is_fast() && core.is_timely() && message.is_some() {
        inbox.push_fast(message, key, core.frame.telemetry.coarse.coarse_stamp());
        return Ok(());
    }
    Err(key)
}

#[inline(never)]
fn try_send_slowly<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    let placed = try_place(core, message, sender, urgency);
    sent_or_over(core, message, placed, sender)
}

#[inline(never)]
fn try_send_keyed<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
    key: Hashed<K>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    let placed = take_and_push(core, message, key, sender, urgency);
    sent_or_over(core, message, placed, sender)
}

/// Applies the overflow policy to a message that found no room.
#[cfg_attr(not(debug_assertions), inline(always))]
fn sent_or_over<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: &mut Option<A::Message>,
    placed: Result<(), Refused>,
    sender: u32,
) -> Result<(), Refused> {
    match placed {
        Err(Refused::Full) => message.lent(&mut |payload| overflow(core, payload, sender)),
        Err(Refused::KeyFull) => message.lent(&mut |payload| overflow_of_key(core, payload)),
        pushed => pushed,
    }
}

/// Queues a message if there is room.
#[cfg_attr(not(debug_assertions), inline(always))]
fn try_place<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut impl LendOutgoing<A::Message, A::Reply, A::Error>,
    sender: u32,
    urgency: Urgency,
) -> Result<(), Refused> {
    if core.settings.derived.is_checked {
        return payload.lent(&mut |payload| try_place_checked(core, payload, sender, urgency));
    }
    let key = core.key(payload);
    take_and_push(core, payload, key, sender, urgency)
}

/// Queues messages from the front, as many as there is room for.
fn try_place_many<A: Actor, K: Key>(
    core: &Core<A, K>,
    messages: &mut VecDeque<A::Message>,
    sender: u32,
) -> Result<PlacedMany, Refused> {
    if core.settings.derived.is_checked {
        let place = |one: &mut OutgoingOf<A>| try_place_checked(core, one, sender, Urgency::Now);
        let sent = push_one_by_one(messages, &place)?;
        return Ok(PlacedMany { sent, full: !messages.is_empty() });
    }
    let permits = core.queue.permits.try_take_most(messages.len() as u64, core)?;
    let mut many = Many { core, permits, filled: 0 };
    let before = messages.len();
    let mut pushed = Ok(());
    while many.permits > 0 && pushed.is_ok() {
        pushed = many.push(messages, sender);
    }
    // Otherwise there was no room behind a key.
    let full = pushed.is_ok() && !messages.is_empty();
    match before - messages.len() {
        0 => pushed.map(|()| PlacedMany { sent: 0, full }),
        sent => Ok(PlacedMany { sent, full }),
    }
}

/// True once for a sender whose messages pile up, if all of them are in one shard.
fn should_step_aside<A: Actor, K: Key>(core: &Core<A, K>, sender: u32) -> bool {
    let index = core.shard_of(&(None, 0), sender);
    !core.keyed() && std::mem::take(&mut core.queue.shards[index].inbox.lock().turn.is_over)
}

impl<A: Actor, K: Key> SenderVtable<A::Message, A::Reply, A::Error> for Core<A, K> {
    fn try_send(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        match self.routing.way_in {
            WayIn::Plain => try_send_plain(self, message, sender, urgency),
            WayIn::ByKey => try_send_by_key(self, message, sender, urgency),
            WayIn::Checked => try_send_slowly(self, message, sender, urgency),
        }
    }

    fn try_push(
        &self,
        payload: &mut OutgoingOf<A>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<(), Refused> {
        if let Some(to) = self.diverted(payload) {
            return divert(self, to, payload);
        }
        match try_place(self, payload, sender, urgency) {
            Err(Refused::Full) => overflow(self, payload, sender),
            Err(Refused::KeyFull) => overflow_of_key(self, payload),
            pushed => pushed,
        }
    }

    #[inline]
    fn serve(
        &self,
        message: &mut Option<A::Message>,
        sender: u32,
        caller: &Waker,
    ) -> Option<HandoffWaitOf<'_, A>> {
        match self.settings.derived.uses_handoff && !self.queue.wake.any_ready() {
            true => hand(self, message, sender, caller),
            false => None,
        }
    }

    fn push_permitted(&self, payload: &mut OutgoingOf<A>, sender: u32) -> Result<(), NotAccepted> {
        let permit = PoolPermit(Some(self));
        try_claim(self, payload).map_err(|refused| why(self, refused))?;
        if let Some(push) = &self.push {
            let pushed = push.place_permitted(self, payload, sender);
            pushed.map_err(|refused| why(self, refused))?;
        } else {
            push_keyed(self, payload, sender, false).map_err(|refused| why(self, refused))?;
        }
        permit.used();
        Ok(())
    }

    fn try_push_many(
        &self,
        messages: &mut VecDeque<A::Message>,
        sender: u32,
        urgency: Urgency,
    ) -> Result<usize, Refused> {
        if urgency == Urgency::CanStepAside && should_step_aside(self, sender) {
            return Err(Refused::NotNow);
        }
        if let Overflow::DropOldest = self.settings.functions.overflow {
            return push_one_by_one(messages, &|one| self.try_push(one, sender, Urgency::Now));
        }
        // Nothing is dropped here: messages that do not fit stay with their sender.
        let placed = try_place_many(self, messages, sender);
        if matches!(placed, Err(Refused::Full) | Ok(PlacedMany { full: true, .. })) {
            found_full(self);
        }
        let sent = placed.map(|placed| placed.sent);
        match (sent, &self.settings.functions.overflow) {
            (Ok(sent), Overflow::Fallback(other)) => {
                Ok(sent + other.take_over_many(messages).unwrap_or(0))
            }
            (Err(Refused::Full), Overflow::Fallback(other)) => other.take_over_many(messages),
            (Err(Refused::KeyFull), Overflow::Fallback(other)) => other.take_over_many(messages),
            (Err(Refused::Full), overflow) if !overflow.waits() => Err(Refused::Rejected),
            (Err(Refused::KeyFull), overflow) if !overflow.waits() => Err(Refused::KeyRejected),
            (sent, _) => sent,
        }
    }

    fn push_waiting<'a>(
        &'a self,
        payload: &'a mut Outgoing<A::Message, A::Reply, A::Error>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), NotAccepted>> {
        Box::pin(async move {
            if let Some(to) = self.diverted(payload) {
                return to.vtable.push_waiting(payload, to.place()).await;
            }
            self.frame.telemetry.count_wait();
            if let Some((bytes, units)) = to_claim(self, payload) {
                let claim = bytes.claim(units, &self.queue.permits).await;
                has_claimed(payload, claim.map_err(|Closed| self.why_closed())?);
            }
            if let Some(push) = &self.push {
                let pushed = push.place_waiting(self, payload, sender).await;
                return pushed.map_err(|refused| why(self, refused));
            }
            push_in_its_turn(self, payload, sender).await.map_err(|refused| why(self, refused))
        })
    }

    fn permit(&self) -> BoxFuture<'_, Result<(), Closed>> {
        Box::pin(async move {
            let (mut taken, mut waits) = (pin!(self.await_permit()), false);
            poll_fn(|task| {
                let polled = taken.as_mut().poll(task);
                if polled.is_pending() && self.queue.permits.is_starved() {
                    found_full(self);
                }
                if polled.is_pending() && !std::mem::replace(&mut waits, true) {
                    self.frame.telemetry.count_wait();
                }
                polled
            })
            .await
        })
    }

    fn try_permit(&self) -> Result<(), Refused> {
        match self.queue.permits.try_take(1, self) {
            Err(Refused::Full) => {
                found_full(self);
                Err(Refused::Full)
            }
            taken => taken.map(|_| ()),
        }
    }

    fn give_permit(&self) {
        self.queue.permits.give(1, self);
    }

    fn why_closed(&self) -> NotAccepted {
        // Pairs with the store in `close`, which comes before permits and shards are closed: a
        // sender that is refused because of a stop learns of the stop, and not of missing workers.
        // A keeper that has refused an urgent message has ended, and its pool follows.
        let closing = self.frame.lifecycle.closing.load(Ordering::SeqCst);
        match closing || self.urgent.get().is_some_and(|keeper| !keeper.erase().is_alive()) {
            true => NotAccepted::Stopped,
            false => NotAccepted::NoWorkers,
        }
    }

    fn count_rejected(&self) {
        self.frame.telemetry.counters.rejected.fetch_add(1, Ordering::Relaxed);
    }

    fn next_place(&self, beginning: FirstMessage) -> u32 {
        self.routing.places.next(beginning)
    }

    fn handle_made(&self) {
        self.frame.lifecycle.handles.fetch_add(1, Ordering::Relaxed);
    }

    fn downgrade(self: Arc<Self>) -> WeakSenderVtable<A::Message, A::Reply, A::Error> {
        let vtable: Arc<dyn SenderVtable<A::Message, A::Reply, A::Error>> = self;
        WeakSenderVtable::Pool(Arc::downgrade(&vtable))
    }

    #[inline]
    fn enter_call(
        &self,
        payload: &Outgoing<A::Message, A::Reply, A::Error>,
    ) -> Result<Option<ReentrancyGuard>, Reentrant> {
        match self.diverted(payload) {
            Some(to) => to.vtable.enter_call(payload),
            None => match slot_at_work(self.identity()) {
                Some(slot) => enter_call_of(self, slot, payload),
                None => Ok(None),
            },
        }
    }

    #[cfg(feature = "gather")]
    fn show_live(
        self: Arc<Self>,
        show: &mut crate::address::vtable::ShowWorker<'_, A::Message, A::Reply, A::Error>,
    ) {
        super::workers::show_workers(&self, true, show);
    }

    fn own_call(self: Arc<Self>, payload: &OutgoingOf<A>) -> Option<OwnCall> {
        if let Some(to) = self.diverted(payload) {
            return to.vtable.clone().own_call(payload);
        }
        OwnCall::of(self.clone(), self.identity(), |slot| has_key_in_hand(&*self, payload, slot))
    }

    fn handle_dropped(self: Arc<Self>) {
        // Pairs with the store in `end`. If the end is missed, a stop follows that finds nothing to
        // do.
        if self.frame.lifecycle.handles.fetch_sub(1, Ordering::AcqRel) > 1
            || self.frame.lifecycle.ended.load(Ordering::SeqCst)
        {
            return;
        }
        close(&*self);
        let core = self.clone();
        self.frame.env.spawn(Box::pin(async move {
            stop::run::stop(core, Stop::within(Duration::MAX)).await;
        }));
    }
}

/// A worker of this pool is about to wait for a reply from the same pool.
#[cold]
fn enter_call_of<A: Actor, K: Key>(
    core: &Core<A, K>,
    slot: usize,
    payload: &OutgoingOf<A>,
) -> Result<Option<ReentrancyGuard>, Reentrant> {
    if has_key_in_hand(core, payload, slot) {
        return Err(Reentrant);
    }
    // One count, compared once: a worker that joins or leaves in the meantime could as well have
    // come later.
    let live = core.frame.membership.live.load(Ordering::Relaxed);
    core.handoff.calls.enter(core.identity(), live)
}

/// True if a worker is the owner of this message's key.
fn has_key_in_hand<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &OutgoingOf<A>,
    slot: usize,
) -> bool {
    if !core.keyed() {
        let push = core.push.as_ref();
        return push.is_some_and(|push| push.is_assigned_to(core, payload, slot));
    }
    let key = core.key(payload);
    let index = core.shard_of(&key, 0);
    let own = key.0.is_some() && core.queue.shards[index].outbox.lock().is_owner(key.1, slot);
    discard(key);
    own
}
