//! Messages that a policy dispatches to workers, in the sender's task.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
};

use greenroom_queue::{
    discard::discard,
    entry::Entry,
    lock::user_code_follows,
    permits::{Closed, Refused},
    stamp::Stamp,
};

use super::{
    Core, ExtraOf, Key, Queued, Urgency,
    evict::{evict, freed, make_room_at, try_permit},
    mail::push_to,
    push::{push_in_line, take_and_push},
    room::{MailboxPlace, PoolPermit, wait_for_permit},
};
use crate::pool::frame::gate::settle_if_over;
use crate::{
    Actor, Class,
    address::vtable::BoxFuture,
    delivery::Waiter,
    pool::{
        handoff::reentrancy::slot_at_work,
        membership::{live_members::LiveMembers, mailbox::Mailbox, slot_state::Status},
        outgoing::{Outgoing, OutgoingOf},
        policy::{About, Choice, Crew},
        pool_payload::Entries,
        push::Push,
        routing::Asking,
    },
};

/// How often a policy is asked again when the worker that it chose has gone.
const CHOICES: u32 = 3;

/// Used instead of a change counter: workers come and go, and this change is never the last one.
const NEVER: u64 = u64::MAX;

/// The result of a choice.
pub(super) enum Chosen<A: Actor, K> {
    One(Arc<Mailbox<A, K>>),
    Several(Vec<Arc<Mailbox<A, K>>>),
    Any,
    /// No worker among those that were there after this change.
    Hold(u64),
    Refused,
    /// The chosen worker has gone.
    Gone,
}

/// A pool that pushes messages by the policy of its settings.
pub(crate) struct ByPolicy;

impl<A: Actor, K: Key> Push<A, K, Core<A, K>> for ByPolicy {
    fn try_place(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        for _ in 0..CHOICES {
            let tried = match choose_in_turn(pool, payload) {
                Chosen::One(member) => try_push_to(pool, &member, payload),
                Chosen::Several(members) => push_copies(pool, &members, payload, 0),
                Chosen::Any => break,
                Chosen::Hold(seen) => {
                    let permit = try_permit(pool)?;
                    return hold_back(pool, payload, seen).map(|()| permit.used());
                }
                Chosen::Refused => return Err(Refused::ByPolicy),
                Chosen::Gone => continue,
            };
            match tried {
                // Pairs with the store in `close`, before it shuts the mailboxes: otherwise a
                // sender would ask the policy again in a pool that closes.
                Err(Refused::Closed) if !pool.frame.lifecycle.closing.load(Ordering::SeqCst) => {}
                tried => return tried,
            }
        }
        take_and_push(pool, payload, (None, 0), sender, Urgency::Now)
    }

    fn place_permitted(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        dispatch_permitted(pool, payload, sender, Overfill::WherePermitted)
    }

    /// Waits for room in the pool and then, if the chosen worker has none, at that worker. Under a
    /// strict policy, it waits at the worker first.
    fn place_waiting<'a>(
        &self,
        pool: &'a Core<A, K>,
        payload: &'a mut OutgoingOf<A>,
        sender: u32,
    ) -> BoxFuture<'a, Result<(), Refused>> {
        Box::pin(async move {
            let policy = pool.settings.functions.dispatch.as_ref();
            if policy.is_some_and(|policy| policy.is_strict()) {
                return dispatch_waiting(pool, payload, sender).await;
            }
            let permit = wait_for_permit(pool).await?;
            match dispatch_permitted(pool, payload, sender, Overfill::Never) {
                Ok(()) => permit.used(),
                Err(Refused::Full) => {
                    drop(permit);
                    return dispatch_waiting(pool, payload, sender).await;
                }
                refused => return refused,
            }
            Ok(())
        })
    }

    /// At the worker that the policy chooses, if that worker is full. The policy comes first: if it
    /// refuses or panics, no message makes room.
    fn make_room(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        let permit = match choose_in_turn(pool, payload) {
            Chosen::Refused => return Err(Refused::ByPolicy),
            Chosen::Several(members) => {
                return make_room_for_copies(pool, &members, payload, sender);
            }
            Chosen::One(member) => {
                let permit = make_room_at(pool, &member, sender)?;
                push_to(pool, &member, payload)
                    .or_else(|Closed| push_to_any(pool, payload, sender))?;
                permit
            }
            chosen => {
                let permit = freed(pool, evict(pool, pool.shard_of(&(None, 0), sender)))?;
                match chosen {
                    Chosen::Hold(seen) => hold_back(pool, payload, seen)?,
                    _ => push_to_any(pool, payload, sender)?,
                }
                permit
            }
        };
        permit.used();
        Ok(())
    }

    fn ask_again(&self, pool: &Core<A, K>) {
        let asking = &pool.routing.asking;
        // Pairs with the exchange below: the caller that is asking asks once more for this one, or
        // it has finished and this one asks. Two at once could place the messages of one sender in
        // any order.
        if asking.callers.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        loop {
            // Pairs with the `fetch_add` above: a caller that is not counted here makes the
            // exchange below fail. Otherwise the policy would not be asked about the messages that
            // it has held.
            let callers = asking.callers.load(Ordering::SeqCst);
            // Pairs with the `fetch_add` in `members_changed`: `asked` does not cover a later
            // change. Otherwise a new message would overtake messages held for a worker that has
            // joined.
            let seen = pool.frame.membership.member_changes.load(Ordering::SeqCst);
            ask_once_more(pool);
            // Pairs with the load in `choose_in_turn`, by which new messages are held: every
            // message held until then has its place before.
            asking.asked.store(seen, Ordering::SeqCst);
            // Pairs with the `fetch_add` above: if there was another caller, the policy is asked
            // again.
            if asking
                .callers
                .compare_exchange(callers, 0, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                return;
            }
        }
    }
}

/// The mailbox of a worker that is there or is being restarted. Call it under the lock of the
/// members.
pub(crate) fn member_mailbox<A: Actor, K: Key>(
    core: &Core<A, K>,
    slot: usize,
    live: bool,
) -> Option<Arc<Mailbox<A, K>>> {
    let place = core.frame.membership.slots.at(slot).details.lock();
    let there = place.status == Status::Live || (!live && place.status == Status::Starting);
    there.then(|| core.mailbox(slot))
}

/// The list of live members, never older than a change that the caller knows of: a caller that
/// finds it out of date waits until it is rebuilt.
fn live_members<A: Actor, K: Key>(core: &Core<A, K>) -> Arc<LiveMembers<A, K>> {
    let made = core.routing.live_members.read().clone();
    // Pairs with the `fetch_add` in `members_changed`, after the status of a slot has changed: an
    // older list is rebuilt. Otherwise a policy would choose among workers that are gone.
    if let Some(made) = made
        && made.made_after == core.frame.membership.member_changes.load(Ordering::SeqCst)
    {
        return made;
    }
    let member_list = core.frame.membership.members.lock();
    // Read before any worker is checked: a change in between makes the list old at once. Pairs with
    // the same `fetch_add`.
    let made_after = core.frame.membership.member_changes.load(Ordering::SeqCst);
    let live = member_list.slots().filter_map(|slot| member_mailbox(core, slot, true));
    let live_members = Arc::new(LiveMembers { members: live.collect(), made_after });
    *core.routing.live_members.write() = Some(live_members.clone());
    live_members
}

/// Like `choose`, for a new message: it is held behind messages that the policy has not been asked
/// about since workers came or went (P32).
pub(super) fn choose_in_turn<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Chosen<A, K> {
    let chosen = choose(core, payload);
    let Asking { holds, asked, .. } = &core.routing.asking;
    // Pairs with the `fetch_add` in `members_changed`, before which no list has the new worker: if
    // it was chosen, the change is seen here.
    let overtakes = matches!(chosen, Chosen::One(_) | Chosen::Several(_))
        && holds.load(Ordering::SeqCst)
        && asked.load(Ordering::SeqCst)
            != core.frame.membership.member_changes.load(Ordering::SeqCst);
    if overtakes { Chosen::Hold(NEVER) } else { chosen }
}

pub(super) fn choose<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Chosen<A, K> {
    let (Some(policy), Some(message)) = (&core.settings.functions.dispatch, &payload.message)
    else {
        return Chosen::Any;
    };
    let live_members = live_members(core);
    if live_members.members.is_empty() {
        return Chosen::Any;
    }
    let extra = payload.extra.as_ref();
    let about = About {
        class: payload.class,
        is_call: extra.is_some_and(|extra| extra.port.is_some()),
        sender: extra.and_then(|extra| extra.sender()),
    };
    user_code_follows();
    let choice = policy.choose(message, &about, &Crew { members: &*live_members });
    let find = |slot| live_members.members.iter().find(|member| member.slot == slot).cloned();
    let caller = match payload.extra.as_ref().map(|extra| extra.waiter) {
        None | Some(Waiter::Other) => None,
        Some(_) => slot_at_work(core.identity()),
    };
    let one = |member: Option<Arc<Mailbox<A, K>>>| member.map_or(Chosen::Gone, Chosen::One);
    let chosen = match choice {
        Choice::At(place) => one(live_members.members.get(place).cloned()),
        Choice::Slot(slot) => one(find(slot)),
        Choice::Several(slots) => {
            several(core, slots.into_iter().filter_map(find).collect(), caller)
        }
        Choice::Any => Chosen::Any,
        Choice::Hold => Chosen::Hold(live_members.made_after),
        Choice::Refuse => Chosen::Refused,
    };
    match chosen {
        Chosen::One(member) if caller == Some(member.slot) => spare_caller(core, payload),
        chosen => chosen,
    }
}

/// The chosen worker itself waits for the reply. If other workers would do, it is passed over as if
/// it had gone.
#[cold]
fn spare_caller<A: Actor, K: Key>(core: &Core<A, K>, payload: &mut OutgoingOf<A>) -> Chosen<A, K> {
    let is_strict =
        core.settings.functions.dispatch.as_ref().is_some_and(|policy| policy.is_strict());
    if !is_strict {
        return Chosen::Gone;
    }
    if let Some(extra) = &mut payload.extra {
        extra.waiter = Waiter::Chosen;
    }
    Chosen::Refused
}

/// Leaves out a worker that itself waits for the reply, if there is another.
fn several<A: Actor, K: Key>(
    core: &Core<A, K>,
    mut members: Vec<Arc<Mailbox<A, K>>>,
    caller: Option<usize>,
) -> Chosen<A, K> {
    members.sort_by_key(|member| (caller == Some(member.slot), member.slot));
    members.dedup_by_key(|member| member.slot);
    if core.settings.functions.copy_for_several.is_some() && members.len() > 1 {
        return Chosen::Several(members);
    }
    let least = members
        .into_iter()
        .min_by_key(|member| (caller == Some(member.slot), member.waiting() + member.in_hand()));
    least.map_or(Chosen::Gone, Chosen::One)
}

/// Places a message whose permit of the pool has been taken. The permit is used unless there is an
/// error. Returns `Full` if the worker is full and may not be overfilled.
fn dispatch_permitted<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
    overfill: Overfill,
) -> Result<(), Refused> {
    for _ in 0..CHOICES {
        match choose_in_turn(core, payload) {
            Chosen::One(member) => match member.try_reserve() {
                Err(Refused::Full) if overfill == Overfill::Never => return Err(Refused::Full),
                tried => {
                    if tried.is_err() {
                        member.reserve_anyway();
                    }
                    if push_to(core, &member, payload).is_ok() {
                        return Ok(());
                    }
                }
            },
            Chosen::Several(members) => match push_copies(core, &members, payload, 1) {
                // Pairs with the store in `close`, before it shuts the mailboxes: otherwise a
                // sender would ask the policy again in a pool that closes.
                Err(Refused::Closed) if !core.frame.lifecycle.closing.load(Ordering::SeqCst) => {}
                tried => return tried,
            },
            Chosen::Any => break,
            Chosen::Hold(seen) => return hold_back(core, payload, seen),
            Chosen::Refused => return Err(Refused::ByPolicy),
            Chosen::Gone => {}
        }
    }
    push_to_any(core, payload, sender)
}

pub(super) fn push_to_any<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    let index = core.shard_of(&(None, 0), sender);
    push_in_line(core, index, payload, (None, 0), false)
}

/// Waits for room at the worker that the policy chooses. A message for several workers does not
/// wait.
async fn dispatch_waiting<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    let mut choices = 1;
    loop {
        let member = match choose_in_turn(core, payload) {
            Chosen::One(member) => member,
            Chosen::Several(_) => return ByPolicy.try_place(core, payload, sender),
            Chosen::Refused => return Err(Refused::ByPolicy),
            Chosen::Gone if choices < CHOICES => {
                choices += 1;
                continue;
            }
            chosen => {
                let permit = wait_for_permit(core).await?;
                match chosen {
                    Chosen::Hold(seen) => hold_back(core, payload, seen)?,
                    _ => push_to_any(core, payload, sender)?,
                }
                permit.used();
                return Ok(());
            }
        };
        if member.reserve().await.is_ok() {
            let place = MailboxPlace(Some(&*member));
            let permit = wait_for_permit(core).await?;
            place.used();
            if push_to(core, &member, payload).is_ok() {
                permit.used();
                return Ok(());
            }
        }
        if core.queue.permits.is_closed() {
            return Err(Refused::Closed);
        }
    }
}

/// Queues a message for one particular worker, if there is room.
pub(crate) fn try_push_to<A: Actor, K: Key>(
    core: &Core<A, K>,
    member: &Mailbox<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    member.try_reserve()?;
    let place = MailboxPlace(Some(member));
    core.queue.permits.try_take(1, core)?;
    place.used();
    push_to(core, member, payload).map_err(|Closed| {
        core.queue.permits.give(1, core);
        Refused::Closed
    })
}

/// Queues a copy for each worker, or nothing if one of them is full. As many permits have been
/// taken before; they are used unless there is an error. A copy for a worker that is just leaving
/// goes to any other.
fn push_copies<A: Actor, K: Key>(
    core: &Core<A, K>,
    members: &[Arc<Mailbox<A, K>>],
    payload: &mut OutgoingOf<A>,
    permits: u64,
) -> Result<(), Refused> {
    // Copying is user code, so it comes before anything is taken.
    let copies = copies(core, members.len() - 1, payload);
    let mut places = Vec::new();
    for member in members {
        member.try_reserve()?;
        places.push(MailboxPlace(Some(&**member)));
    }
    let wanted = members.len() as u64 - permits;
    let taken = core.queue.permits.try_take_most(wanted, core)?;
    if taken < wanted {
        core.queue.permits.give(taken, core);
        return Err(Refused::Full);
    }
    hand_out(core, members, payload, copies, places, taken)
}

/// This many copies of a message.
pub(super) fn copies<A: Actor, K: Key>(
    core: &Core<A, K>,
    count: usize,
    payload: &OutgoingOf<A>,
) -> Copies<A> {
    let copy = || Outgoing {
        message: payload
            .message
            .as_ref()
            .zip(core.settings.functions.copy_for_several)
            .map(|(m, f)| f(m)),
        extra: None,
        class: payload.class,
    };
    Copies(std::iter::repeat_with(copy).take(count).collect())
}

/// Hands the message to the first worker and the copies to the others; there are places and permits
/// for all of them. `taken` permits were taken for this; they are used unless there is an error.
pub(super) fn hand_out<A: Actor, K: Key>(
    core: &Core<A, K>,
    members: &[Arc<Mailbox<A, K>>],
    payload: &mut OutgoingOf<A>,
    mut copies: Copies<A>,
    places: Vec<MailboxPlace<'_, A, K>>,
    taken: u64,
) -> Result<(), Refused> {
    let Some((first, others)) = members.split_first() else { return Err(Refused::Full) };
    // The caller's own message: if not even this one is accepted, none is.
    if push_to(core, first, payload).is_err() && push_to_any(core, payload, 0).is_err() {
        core.queue.permits.give(taken, core);
        return Err(Refused::Closed);
    }
    places.into_iter().for_each(MailboxPlace::used);
    for (member, one) in others.iter().zip(&mut copies.0) {
        if push_to(core, member, one).is_err() && push_to_any(core, one, 0).is_err() {
            core.queue.permits.give(1, core);
        }
    }
    Ok(())
}

/// Holds a message, whose permit has been taken, until a worker joins that the policy has not seen.
pub(super) fn hold_back<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    seen: u64,
) -> Result<(), Refused> {
    hold(core, payload, 0, || true)?;
    // Workers that have started since have already checked held messages. Pairs with the
    // `fetch_add` in `members_changed`, before `ask_again` takes the lock in `hold`: the new worker
    // finds the message, or its sender sees the change. Otherwise the message would be held
    // although a worker could have it.
    if core.frame.membership.member_changes.load(Ordering::SeqCst) != seen {
        ByPolicy.ask_again(core);
    }
    Ok(())
}

/// Holds a message, whose permit has been taken, unless a worker could have it by now. Not in a
/// pool that is closing: held messages may never be checked again.
pub(super) fn hold<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    tag: u32,
    is_for_nobody: impl FnOnce() -> bool,
) -> Result<bool, Refused> {
    let mut held = core.routing.held.lock();
    // Pairs with the stores in `close` and `refuse_later`, before `drain_mailboxes` takes this
    // lock: otherwise a message would be held and never given back or dead-lettered.
    if core.frame.lifecycle.closing.load(Ordering::SeqCst) || core.queue.permits.is_closed() {
        return Err(Refused::Closed);
    }
    if !is_for_nobody() {
        return Ok(false);
    }
    let Some(entry) = entry_of::<A, K>(payload, core.stamp(0)) else {
        return Err(Refused::Closed);
    };
    core.frame.telemetry.counters.accepted.fetch_add(1, Ordering::Relaxed);
    held.push_back(Entry { hash: tag, ..entry });
    // Pairs with the load in `choose_in_turn`: the sender's next message sees it; otherwise that
    // one would overtake this one.
    core.routing.asking.holds.store(true, Ordering::SeqCst);
    Ok(true)
}

/// If the policy panics, the message goes to any worker. Messages that are held again stay before
/// those that were held in the meantime.
fn ask_once_more<A: Actor, K: Key>(core: &Core<A, K>) {
    let mut held = std::mem::take(&mut *core.routing.held.lock());
    let mut still_held = Entries::<A, K>::new();
    while let Some(entry) = held.pop_front() {
        let stamp = entry.stamp;
        let mut payload = Outgoing {
            message: Some(entry.message),
            extra: entry.extra,
            class: Class::of(entry.urgent),
        };
        let chosen = catch_unwind(AssertUnwindSafe(|| choose(core, &mut payload)));
        let chosen = chosen.unwrap_or_else(|panic| {
            discard(panic);
            Chosen::Any
        });
        if !place_again(core, chosen, &mut payload, stamp)
            && let Some(entry) = entry_of::<A, K>(&mut payload, stamp)
        {
            still_held.push_back(entry);
        }
    }
    let keeps = !still_held.is_empty();
    {
        let mut held = core.routing.held.lock();
        still_held.append(&mut held);
        *held = still_held;
        // Pairs with the load in `choose_in_turn`: until then new messages are held.
        core.routing.asking.holds.store(!held.is_empty(), Ordering::SeqCst);
    }
    if keeps {
        // The last worker may have gone in the meantime, or the pool may have ended.
        settle_if_over(core);
    }
    // A stop may have checked for held messages, or may have counted a placed message twice.
    core.frame.lifecycle.notify_progress();
}

/// Returns false if the message is held again.
fn place_again<A: Actor, K: Key>(
    core: &Core<A, K>,
    chosen: Chosen<A, K>,
    payload: &mut OutgoingOf<A>,
    stamp: Stamp,
) -> bool {
    // It gets another stamp with its place.
    let extra = payload.extra.get_or_insert_with(ExtraOf::<A>::without_port);
    extra.accepted.get_or_insert_with(|| core.frame.telemetry.coarse.at(stamp));
    let placed = match chosen {
        Chosen::Hold(_) => return false,
        Chosen::One(member) => {
            member.reserve_anyway();
            push_to(core, &member, payload).is_ok()
        }
        Chosen::Several(members) => {
            let copied = || push_copies(core, &members, payload, 1).is_ok();
            catch_unwind(AssertUnwindSafe(copied)).map_err(discard).unwrap_or(false)
        }
        Chosen::Any | Chosen::Refused | Chosen::Gone => false,
    };
    let placed = placed || push_in_line(core, 0, payload, (None, 0), false).is_ok();
    if placed {
        // It was counted as accepted when it was held, and again now. Pairs with the store in
        // `close`, through the load in `notify_progress`: a stop that counts both is told to check
        // again.
        core.frame.telemetry.counters.accepted.fetch_sub(1, Ordering::SeqCst);
    }
    placed
}

/// Queues a copy for each worker, even for a full one. If no message may be evicted at one of them,
/// no worker gets a copy, and room that was already made stays unused.
fn make_room_for_copies<A: Actor, K: Key>(
    core: &Core<A, K>,
    members: &[Arc<Mailbox<A, K>>],
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    let each = copies(core, members.len() - 1, payload);
    let (mut places, mut permits) = (Vec::new(), Vec::new());
    for member in members {
        permits.push(make_room_at(core, member, sender)?);
        places.push(MailboxPlace(Some(&**member)));
    }
    let taken = permits.len() as u64;
    permits.into_iter().for_each(PoolPermit::used);
    hand_out(core, members, payload, each, places, taken)
}

pub(super) fn entry_of<A: Actor, K>(
    payload: &mut OutgoingOf<A>,
    stamp: Stamp,
) -> Option<Queued<A, K>> {
    let (extra, urgent) = (payload.extra.take(), payload.class.is_urgent());
    payload.message.take().map(|message| Entry {
        message,
        extra,
        key: None,
        hash: 0,
        urgent,
        stamp,
    })
}

/// Whether a worker with a full mailbox gets another message: the pool has room, and the message's
/// permit is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overfill {
    Never,
    WherePermitted,
}

/// Copies on their way: those that were not queued are discarded.
pub(super) struct Copies<A: Actor>(Vec<OutgoingOf<A>>);

impl<A: Actor> Drop for Copies<A> {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|one| discard(one.message));
    }
}
