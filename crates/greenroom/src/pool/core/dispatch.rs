//! Messages that a policy gives to workers, in the sender's task.

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
    evict::{evict, freed, make_room_at},
    room::{MailboxPlace, PoolPermit},
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

/// How often a policy is asked again when the worker that it named has gone.
const CHOICES: u32 = 3;

/// In the place of a change: workers come and go, and this one is never the last.
const NEVER: u64 = u64::MAX;

/// What a choice comes to.
pub(super) enum Chosen<A: Actor, K> {
    One(Arc<Mailbox<A, K>>),
    Several(Vec<Arc<Mailbox<A, K>>>),
    Any,
    /// No worker, of those that were there after this change.
    Hold(u64),
    Refused,
    /// The worker that was named has gone.
    Gone,
}

/// A pool that pushes as the policy of its settings says.
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
                    pool.queue.permits.try_take(1, pool)?;
                    return hold_permitted(pool, payload, seen);
                }
                Chosen::Refused => return Err(Refused::ByPolicy),
                Chosen::Gone => continue,
            };
            match tried {
                // Pairs with the store in `close`, before it shuts the mailboxes: otherwise a
                // sender asks the policy again in a pool that closes.
                Err(Refused::Closed) if !pool.frame.lifecycle.closing.load(Ordering::SeqCst) => {}
                tried => return tried,
            }
        }
        pool.take_and_push(payload, (None, 0), sender, Urgency::Now)
    }

    fn place_permitted(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        dispatch_permitted(pool, payload, sender, Overfill::WherePermitted)
    }

    /// Waits for room in the pool, and if the worker that is chosen then has none, at that worker;
    /// under a strict policy, there first.
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
            pool.await_permit().await.map_err(|Closed| Refused::Closed)?;
            let permit = PoolPermit(Some(pool));
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

    fn make_room(
        &self,
        pool: &Core<A, K>,
        payload: &mut OutgoingOf<A>,
        sender: u32,
    ) -> Result<(), Refused> {
        make_room_by_choice(pool, payload, sender)
    }

    fn ask_again(&self, pool: &Core<A, K>) {
        let asking = &pool.routing.asking;
        // Pairs with the exchange below: whoever asks asks once more for this caller, or is done
        // before, and this caller asks. Two at once would place messages of one sender in any
        // order.
        if asking.callers.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        loop {
            // Pairs with the `fetch_add` above: a caller that is not counted here makes the
            // exchange below fail. Otherwise what it has held is not asked about.
            let callers = asking.callers.load(Ordering::SeqCst);
            // Pairs with the `fetch_add` in `members_changed`: of a later change, `asked` does not
            // tell. Otherwise a new message overtakes what is held for a worker that has come.
            let seen = pool.frame.membership.member_changes.load(Ordering::SeqCst);
            ask_once_more(pool);
            // Pairs with the load in `choose_in_turn`, by which new messages are held: all that
            // is held until then has its place before.
            asking.asked.store(seen, Ordering::SeqCst);
            // Pairs with the `fetch_add` above: if there was another caller, it is asked again.
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

impl<A: Actor, K: Key> Core<A, K> {
    /// The mailbox of a worker that is there, or is being started again. Under the lock of the
    /// members.
    pub(crate) fn member_mailbox(&self, slot: usize, live: bool) -> Option<Arc<Mailbox<A, K>>> {
        let place = self.frame.membership.slots.at(slot).details.lock();
        let there = place.status == Status::Live || (!live && place.status == Status::Starting);
        there.then(|| self.mailbox(slot))
    }
}

/// Never older than a change that the caller knows of: a caller that finds it out of date waits
/// until it is made anew.
fn live_members<A: Actor, K: Key>(core: &Core<A, K>) -> Arc<LiveMembers<A, K>> {
    let made = core.routing.live_members.read().clone();
    // Pairs with the `fetch_add` in `members_changed`, after the status of a slot has changed:
    // a list that is older is made anew. Otherwise a policy chooses among workers that are
    // gone.
    if let Some(made) = made
        && made.made_after == core.frame.membership.member_changes.load(Ordering::SeqCst)
    {
        return made;
    }
    let member_list = core.frame.membership.members.lock();
    // Before any worker is looked at: a change in between makes the list old at once. Pairs
    // with the same `fetch_add`.
    let made_after = core.frame.membership.member_changes.load(Ordering::SeqCst);
    let live = member_list.slots().filter_map(|slot| core.member_mailbox(slot, true));
    let live_members = Arc::new(LiveMembers { members: live.collect(), made_after });
    *core.routing.live_members.write() = Some(live_members.clone());
    live_members
}

/// As `choose`, for a new message: it is held behind those of which the policy has not been
/// asked since workers came or went (P32).
pub(super) fn choose_in_turn<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Chosen<A, K> {
    let chosen = choose(core, payload);
    let Asking { holds, asked, .. } = &core.routing.asking;
    // Pairs with the `fetch_add` in `members_changed`, before which no list has the new
    // worker: if it was chosen, the change is seen here.
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

/// The chosen worker waits for the reply itself. If others would do, it is passed over as if
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

/// A worker that waits for the reply itself does not have to give it, if there is another.
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

/// Places a message whose permit of the pool has been taken. The permit is used, unless there
/// is an error. Full if the worker is and may not be overfilled.
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
                    if core.push_to(&member, payload).is_ok() {
                        return Ok(());
                    }
                }
            },
            Chosen::Several(members) => match push_copies(core, &members, payload, 1) {
                // Pairs with the store in `close`, before it shuts the mailboxes: otherwise a
                // sender asks the policy again in a pool that closes.
                Err(Refused::Closed) if !core.frame.lifecycle.closing.load(Ordering::SeqCst) => {}
                tried => return tried,
            },
            Chosen::Any => break,
            Chosen::Hold(seen) => {
                return hold_back(core, payload, seen).map_err(|Closed| Refused::Closed);
            }
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
    core.push(index, payload, (None, 0))
}

/// Waits for room at the worker that the policy chooses. A message for several workers
/// does not wait.
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
                core.await_permit().await.map_err(|Closed| Refused::Closed)?;
                let permit = PoolPermit(Some(core));
                match chosen {
                    Chosen::Hold(seen) => {
                        hold_back(core, payload, seen).map_err(|Closed| Refused::Closed)?;
                    }
                    _ => push_to_any(core, payload, sender)?,
                }
                permit.used();
                return Ok(());
            }
        };
        if member.reserve().await.is_ok() {
            let place = MailboxPlace(Some(&*member));
            core.await_permit().await.map_err(|Closed| Refused::Closed)?;
            place.used();
            if core.push_to(&member, payload).is_ok() {
                return Ok(());
            }
            core.queue.permits.give(1, core);
        }
        if core.queue.permits.is_closed() {
            return Err(Refused::Closed);
        }
    }
}

/// A message for one worker and no other, if there is room.
pub(crate) fn try_push_to<A: Actor, K: Key>(
    core: &Core<A, K>,
    member: &Mailbox<A, K>,
    payload: &mut OutgoingOf<A>,
) -> Result<(), Refused> {
    member.try_reserve()?;
    let place = MailboxPlace(Some(member));
    core.queue.permits.try_take(1, core)?;
    place.used();
    core.push_to(member, payload).map_err(|Closed| {
        core.queue.permits.give(1, core);
        Refused::Closed
    })
}

/// A copy for each, or nothing if one of them is full. So many permits have been taken before;
/// they are used, unless there is an error. A copy for a worker that is just leaving goes
/// to any other.
fn push_copies<A: Actor, K: Key>(
    core: &Core<A, K>,
    members: &[Arc<Mailbox<A, K>>],
    payload: &mut OutgoingOf<A>,
    permits: u64,
) -> Result<(), Refused> {
    // Copying is user code: before anything is taken.
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

/// So many copies of a message.
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

/// The message is for the first of these and the copies are for the others; there are places
/// and permits for all of them. So many of the permits have been taken for this; they are used,
/// unless there is an error.
pub(super) fn hand_out<A: Actor, K: Key>(
    core: &Core<A, K>,
    members: &[Arc<Mailbox<A, K>>],
    payload: &mut OutgoingOf<A>,
    mut copies: Copies<A>,
    places: Vec<MailboxPlace<'_, A, K>>,
    taken: u64,
) -> Result<(), Refused> {
    let Some((first, others)) = members.split_first() else { return Err(Refused::Full) };
    // The caller's own: if not even this one is accepted, none is.
    if core.push_to(first, payload).is_err() && push_to_any(core, payload, 0).is_err() {
        core.queue.permits.give(taken, core);
        return Err(Refused::Closed);
    }
    places.into_iter().for_each(MailboxPlace::used);
    for (member, one) in others.iter().zip(&mut copies.0) {
        if core.push_to(member, one).is_err() && push_to_any(core, one, 0).is_err() {
            core.queue.permits.give(1, core);
        }
    }
    Ok(())
}

fn hold_permitted<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    seen: u64,
) -> Result<(), Refused> {
    hold_back(core, payload, seen).map_err(|Closed| {
        core.queue.permits.give(1, core);
        Refused::Closed
    })
}

/// Keeps a message, whose permit has been taken, until a worker joins that the policy has not
/// seen. Not in a pool that is closing: held messages may not be looked at any more.
pub(super) fn hold_back<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    seen: u64,
) -> Result<(), Closed> {
    let mut held = core.routing.held.lock();
    // Pairs with the stores in `close` and `refuse_later`, before `drain_mailboxes` takes this
    // lock: otherwise a message is held that is never given back, or never dead-lettered.
    if core.frame.lifecycle.closing.load(Ordering::SeqCst) || core.queue.permits.is_closed() {
        return Err(Closed);
    }
    let Some(entry) = entry_of::<A, K>(payload, core.stamp(0)) else { return Err(Closed) };
    core.frame.telemetry.counters.accepted.fetch_add(1, Ordering::Relaxed);
    held.push_back(entry);
    // Pairs with the load in `choose_in_turn`: the sender's next message sees it, or that
    // one overtakes this one.
    core.routing.asking.holds.store(true, Ordering::SeqCst);
    drop(held);
    // Workers that have started since have looked at held messages before. Pairs with the
    // `fetch_add` in `members_changed`, before `ask_again` takes the lock above: the new worker
    // finds the message, or its sender sees the change. Otherwise the message is held although
    // a worker could have it.
    if core.frame.membership.member_changes.load(Ordering::SeqCst) != seen {
        ByPolicy.ask_again(core);
    }
    Ok(())
}

/// If the policy panics, the message is for any worker. What is held again stays before what
/// was held meanwhile.
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
        // The last worker may have gone meanwhile, or the pool may have ended.
        settle_if_over(core);
    }
    // A stop may have looked for what is held, or have counted what was placed twice.
    core.frame.lifecycle.notify_progress();
}

/// False if the message is held back again.
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
            core.push_to(&member, payload).is_ok()
        }
        Chosen::Several(members) => {
            let copied = || push_copies(core, &members, payload, 1).is_ok();
            catch_unwind(AssertUnwindSafe(copied)).map_err(discard).unwrap_or(false)
        }
        Chosen::Any | Chosen::Refused | Chosen::Gone => false,
    };
    let placed = placed || core.push(0, payload, (None, 0)).is_ok();
    if placed {
        // It was counted as accepted when it was held back, and now again. Pairs with the
        // store in `close`, through the load in `notify_progress`: a stop that counts both is
        // told to look again.
        core.frame.telemetry.counters.accepted.fetch_sub(1, Ordering::SeqCst);
    }
    placed
}

/// As `make_room`, at the worker that the policy chooses, if that is full. The policy comes
/// first: if it refuses or panics, no message makes room.
fn make_room_by_choice<A: Actor, K: Key>(
    core: &Core<A, K>,
    payload: &mut OutgoingOf<A>,
    sender: u32,
) -> Result<(), Refused> {
    let chosen = choose_in_turn(core, payload);
    let (permit, pushed) = match chosen {
        Chosen::Refused => return Err(Refused::ByPolicy),
        Chosen::Several(members) => {
            return make_room_for_copies(core, &members, payload, sender);
        }
        Chosen::One(member) => {
            let permit = make_room_at(core, &member, sender)?;
            let pushed = match core.push_to(&member, payload) {
                Err(Closed) => push_to_any(core, payload, sender),
                Ok(()) => Ok(()),
            };
            (permit, pushed)
        }
        Chosen::Hold(seen) => {
            let permit = freed(core, evict(core, core.shard_of(&(None, 0), sender)))?;
            (permit, hold_back(core, payload, seen).map_err(|Closed| Refused::Closed))
        }
        Chosen::Any | Chosen::Gone => {
            let permit = freed(core, evict(core, core.shard_of(&(None, 0), sender)))?;
            (permit, push_to_any(core, payload, sender))
        }
    };
    pushed?;
    permit.used();
    Ok(())
}

/// A copy for each, even for a full one. If no message may give way at one of them, no worker
/// gets one, and room that was made before was made in vain.
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

/// Whether a worker whose mailbox is full gets another message: the pool has room, and its
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
