//! Workers that join a running pool, and workers that leave it.

use std::sync::{Arc, atomic::Ordering};

use greenroom_queue::lock::MutexGuard;

use super::{
    AnyCore, Beginning, Frame, KeysTo,
    capacity::size_changed,
    follow,
    gate::{dead_letter_deserted, one_less, revive, settle_what_is_left},
    notify::notify_size,
};
use crate::{
    AnyAddress, ExitReason, PoolEvent,
    pool::{
        AdminError,
        admin::change::{Outcomes, SlotOutcome},
        membership::{
            member_list::MemberList,
            restart::RestartLog,
            slot_state::{KILLED, LEAVE, REST, SlotDetails, Status},
        },
    },
    pool_events::ResizeReason,
};

/// Starts a worker in each of these slots, apart from the paths of messages. An adopted one
/// continues.
pub(crate) fn start_in(pool: &Arc<dyn AnyCore>, slots: &[usize], outcomes: &Outcomes) {
    for slot in slots {
        let mut details = pool.frame().membership.slots.at(*slot).details.lock();
        let again = details.adopted.as_mut().and_then(|adopted| adopted.again.take());
        drop(details);
        match again {
            Some(again) => again(outcomes.clone()),
            None => pool.clone().start_worker(*slot, Beginning::First(outcomes.clone())),
        }
    }
}

/// The slots of the workers that join, those of the workers that leave, and the new size.
pub(crate) type Changed = Result<(Vec<usize>, Vec<usize>, usize), AdminError>;

/// Adds workers.
pub(crate) fn hire(
    pool: &Arc<dyn AnyCore>,
    mut member_list: MutexGuard<'_, MemberList>,
    workers: usize,
    why: ResizeReason,
    outcomes: &Outcomes,
) -> Changed {
    let bounds = member_list.bounds();
    let size = member_list.len().saturating_add(workers);
    if size > *bounds.end() {
        return Err(AdminError::OutOfBounds { asked: size, bounds });
    }
    let mut slots = Vec::with_capacity(workers);
    for _ in 0..workers {
        slots.push(member_list.join());
    }
    make_slots(&**pool, &member_list);
    for slot in &slots {
        pool.frame().membership.slots.at(*slot).details.lock().status = Status::Starting;
    }
    size_changed(&**pool, member_list.len());
    // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool does
    // not stay closed while it has a worker.
    pool.frame().membership.live.fetch_add(workers, Ordering::SeqCst);
    drop(member_list);
    pool.serve_waiters();
    revive(&**pool);
    notify_size(&**pool, size - workers, size, why);
    for slot in &slots {
        pool.frame().notify(PoolEvent::WorkerAdded { slot: *slot });
    }
    start_in(pool, &slots, outcomes);
    Ok((slots, Vec::new(), size))
}

/// The members, while the pool runs: a caller that changes them holds this lock throughout.
pub(crate) fn members(pool: &dyn AnyCore) -> Result<MutexGuard<'_, MemberList>, AdminError> {
    let member_list = pool.frame().membership.members.lock();
    pool.frame().lifecycle.check_running()?;
    Ok(member_list)
}

pub(crate) fn make_slots(pool: &dyn AnyCore, member_list: &MemberList) {
    pool.grow_to(member_list.made());
    // Last: code that visits all slots asks for the mailbox of each.
    pool.frame().membership.slots.grow_to(member_list.made());
}

/// Tells workers to leave: disabled ones first, then idle ones, then those that joined last.
pub(crate) fn dismiss(
    pool: &Arc<dyn AnyCore>,
    mut member_list: MutexGuard<'_, MemberList>,
    workers: usize,
    why: ResizeReason,
    outcomes: &Outcomes,
) -> Changed {
    let bounds = member_list.bounds();
    let workers = workers.min(member_list.len());
    if member_list.len() - workers < *bounds.start() {
        return Err(AdminError::OutOfBounds { asked: member_list.len() - workers, bounds });
    }
    let mut slots = first_to_leave(&**pool, &member_list);
    slots.truncate(workers);
    for slot in &slots {
        member_list.leave(*slot);
    }
    Ok(send_away(pool, member_list, slots, why, outcomes))
}

/// Tells the workers of slots that have left the list to leave.
fn send_away(
    pool: &Arc<dyn AnyCore>,
    member_list: MutexGuard<'_, MemberList>,
    slots: Vec<usize>,
    why: ResizeReason,
    outcomes: &Outcomes,
) -> (Vec<usize>, Vec<usize>, usize) {
    let size = member_list.len();
    size_changed(&**pool, size);
    drop(member_list);
    notify_size(&**pool, size + slots.len(), size, why);
    for slot in &slots {
        let_leave(pool, *slot, outcomes);
    }
    (Vec::new(), slots, size)
}

/// All members, in the order in which they would leave.
fn first_to_leave(pool: &dyn AnyCore, member_list: &MemberList) -> Vec<usize> {
    let (mut disabled, mut idle, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for slot in member_list.slots().rev() {
        let slot_state = pool.frame().membership.slots.at(slot);
        let is_disabled = slot_state.details.lock().status == Status::Disabled;
        match slot_state.is_busy() {
            _ if is_disabled => disabled.push(slot),
            true => busy.push(slot),
            false => idle.push(slot),
        }
    }
    disabled.append(&mut idle);
    disabled.append(&mut busy);
    disabled
}

/// Adds or dismisses workers until there are this many.
pub(crate) fn resize(pool: &Arc<dyn AnyCore>, workers: usize, outcomes: &Outcomes) -> Changed {
    let member_list = members(&**pool)?;
    let (size, why, bounds) = (member_list.len(), ResizeReason::Asked, member_list.bounds());
    if !bounds.contains(&workers) {
        return Err(AdminError::OutOfBounds { asked: workers, bounds });
    }
    match workers.checked_sub(size) {
        Some(more) => hire(pool, member_list, more, why, outcomes),
        None => dismiss(pool, member_list, size - workers, why, outcomes),
    }
}

/// A member has gone by itself, however few are left. If it was the last, no successor is expected:
/// messages that are still queued when it has left become dead letters, as when the last worker is
/// disabled. This also holds in a pool that is closing: a stop does not wait for the member.
pub(crate) fn drop_out(pool: &Arc<dyn AnyCore>, slot: usize, outcomes: &Outcomes) {
    let mut member_list = pool.frame().membership.members.lock();
    // Pairs with nothing: in a pool that has ended, one worker more may be reported to have left.
    let goes_on = !pool.frame().lifecycle.ended.load(Ordering::SeqCst);
    if goes_on && member_list.leave(slot) {
        pool.frame().membership.slots.at(slot).details.lock().drops_out = true;
        send_away(pool, member_list, vec![slot], ResizeReason::Left, outcomes);
    }
}

/// Tells one worker to leave.
pub(crate) fn dismiss_one(pool: &Arc<dyn AnyCore>, slot: usize, outcomes: &Outcomes) -> Changed {
    dismiss_member(pool, members(&**pool)?, slot, outcomes)
}

fn dismiss_member(
    pool: &Arc<dyn AnyCore>,
    mut member_list: MutexGuard<'_, MemberList>,
    slot: usize,
    outcomes: &Outcomes,
) -> Changed {
    let bounds = member_list.bounds();
    if member_list.has(slot) && member_list.len() <= *bounds.start() {
        return Err(AdminError::OutOfBounds { asked: member_list.len() - 1, bounds });
    }
    if !member_list.leave(slot) {
        return Err(AdminError::NoSuchSlot(slot));
    }
    Ok(send_away(pool, member_list, vec![slot], ResizeReason::Asked, outcomes))
}

/// Tells the worker to leave that was adopted from this address; of several, the one that joined
/// first.
pub(crate) fn dismiss_adopted(
    pool: &Arc<dyn AnyCore>,
    other: &AnyAddress,
    outcomes: &Outcomes,
) -> Changed {
    let member_list = members(&**pool)?;
    let is_other = |slot: &usize| {
        let details = pool.frame().membership.slots.at(*slot).details.lock();
        details.adopted.as_ref().is_some_and(|adopted| adopted.other == *other)
    };
    let slot = member_list.slots().find(is_other).ok_or(AdminError::NotAdopted)?;
    dismiss_member(pool, member_list, slot, outcomes)
}

/// Enables a disabled slot again, with a full restart budget.
pub(crate) fn enable(pool: &Arc<dyn AnyCore>, slot: usize, outcomes: &Outcomes) -> Changed {
    let member_list = members(&**pool)?;
    if !member_list.has(slot) {
        return Err(AdminError::NoSuchSlot(slot));
    }
    if !wake_slot(pool.frame(), slot) {
        return Err(AdminError::NotDisabled(slot));
    }
    let size = member_list.len();
    drop(member_list);
    revive(&**pool);
    pool.frame().notify(PoolEvent::WorkerEnabled { slot });
    start_in(pool, &[slot], outcomes);
    Ok((vec![slot], Vec::new(), size))
}

/// A slot is about to get a worker, with a full restart budget. Returns false if it does not rest.
pub(crate) fn wake_slot(frame: &Frame, slot: usize) -> bool {
    let mut details = frame.membership.slots.at(slot).details.lock();
    let rests = details.status == Status::Disabled;
    if rests {
        details.status = Status::Starting;
        details.told_started = false;
        details.restarts = RestartLog::default();
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed while it has a worker.
        frame.membership.live.fetch_add(1, Ordering::SeqCst);
    }
    rests
}

fn let_leave(pool: &Arc<dyn AnyCore>, slot: usize, outcomes: &Outcomes) {
    let slot_state = pool.frame().membership.slots.at(slot);
    let mut details = slot_state.details.lock();
    let before = std::mem::replace(&mut details.status, Status::Leaving);
    let counts = !std::mem::take(&mut details.given_up);
    details.on_left = Some(outcomes.clone());
    // Before the worker can leave with its keys: its slot may belong to another worker right
    // afterwards.
    let moved = pool.move_keys(slot, KeysTo::Others);
    slot_state.order(LEAVE);
    if before == Status::Disabled {
        pool.frame().membership.note_parting(details.abort.take());
    }
    drop(details);
    pool.frame().membership.members_changed();
    follow(moved);
    if before == Status::Disabled {
        return left(pool, slot, &ExitReason::Normal);
    }
    if counts {
        one_less(&**pool);
    }
    pool.frame().membership.members_changed();
    pool.wake().call(slot, &pool.frame().clock.watchdog);
    pool.frame().lifecycle.over.notify_waiters();
    report_nothing_more(&**pool);
}

/// If the pool has ended and its last task has gone, no task reports that a worker has left:
/// notifies those that wait for that.
pub(crate) fn report_nothing_more(pool: &dyn AnyCore) {
    // Pairs with the store in `end`: a pool that has not ended may have no tasks for a moment and
    // continue.
    let over = pool.frame().lifecycle.ended.load(Ordering::SeqCst);
    // Pairs with the `compare_exchange` in `TaskGuard::drop`, after which the last task comes here:
    // it finds what `let_leave` noted under the lock of the details, or `let_leave`, which took
    // that lock later, sees 0. Otherwise the caller of a change would wait until its deadline.
    let has_tasks = pool.frame().lifecycle.running.load(Ordering::SeqCst) > 0;
    if over && !has_tasks {
        for slot_state in pool.frame().membership.slots.iter() {
            let on_left = slot_state.details.lock().on_left.take();
            // Not under the lock: it wakes waiters.
            drop(on_left);
        }
    }
}

/// The worker of a slot has gone for good.
pub(crate) fn left(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) {
    pool.hand_over(slot);
    let slot_state = pool.frame().membership.slots.at(slot);
    let mut details = slot_state.details.lock();
    let gone = std::mem::take(&mut *details);
    // Before the orders: pairs with the check of `LEAVE` in `drain_mailboxes`.
    let mail = pool.clone().take_mail(slot, reason);
    slot_state.forget_orders();
    drop(details);
    follow(mail);
    slot_state.published.clear();
    pool.frame().membership.members.lock().vacate(slot);
    pool.frame().notify(PoolEvent::WorkerRemoved { slot });
    let SlotDetails { on_left, up, drops_out, .. } = gone;
    if up {
        pool.frame().controllers.notify_down(slot, reason);
    }
    settle_what_is_left(&**pool, drops_out);
    if let Some(outcomes) = on_left {
        let _ = outcomes.send(SlotOutcome::Left(slot));
    }
}

/// Reports that a worker has started, once each time that its slot is taken.
pub(crate) fn notify_started(pool: &dyn AnyCore, slot: usize) {
    let mut details = pool.frame().membership.slots.at(slot).details.lock();
    let told = std::mem::replace(&mut details.told_started, true);
    drop(details);
    if !told {
        pool.frame().notify(PoolEvent::WorkerStarted { slot });
    }
}

/// A worker could not be started. The start is retried.
pub(crate) fn start_failed(pool: &dyn AnyCore, slot: usize, error: String) {
    pool.frame().membership.starts.failed(&error);
    pool.frame().notify(PoolEvent::StartFailed { slot, error });
}

/// A worker runs. Does nothing if that is already known.
pub(crate) fn has_started(pool: &dyn AnyCore, slot: usize) {
    let mut details = pool.frame().membership.slots.at(slot).details.lock();
    let starts = details.status == Status::Starting;
    if starts {
        details.status = Status::Live;
    }
    let was_up = std::mem::replace(&mut details.up, true);
    let changes = starts || !was_up;
    if changes {
        // Under the lock: code that sees the new worker in its slot also sees the change.
        pool.frame().membership.members_changed();
    }
    // Under the lock: a worker that is told to leave from now on gives its keys up again.
    let moved = if starts { pool.move_keys(slot, KeysTo::Worker) } else { None };
    drop(details);
    follow(moved);
    if starts {
        pool.frame().membership.starts.one_more();
    }
    if changes {
        pool.ask_again();
        pool.frame().controllers.notify_up(slot);
    }
}

/// A worker does not run for a while. Returns false if it is to leave instead.
pub(crate) fn has_died(pool: &dyn AnyCore, slot: usize) {
    let mut details = pool.frame().membership.slots.at(slot).details.lock();
    if details.status == Status::Live {
        details.status = Status::Starting;
    }
    drop(details);
    pool.frame().membership.members_changed();
    pool.hand_over(slot);
}

/// The budget of a slot is used up. Its worker has given up what it held. Returns false if it was
/// to leave anyway.
pub(crate) fn disable(pool: &Arc<dyn AnyCore>, slot: usize, reason: &ExitReason) -> bool {
    follow(pool.move_keys(slot, KeysTo::Others));
    pool.hand_over(slot);
    let slot_state = pool.frame().membership.slots.at(slot);
    let mut details = slot_state.details.lock();
    if details.status == Status::Leaving {
        return false;
    }
    details.status = Status::Disabled;
    slot_state.done(REST | KILLED);
    let counts = !std::mem::take(&mut details.given_up);
    // Under the lock: the next worker of the slot may be started right afterwards, with its own
    // mailbox.
    let mail = pool.clone().take_mail(slot, reason);
    drop(details);
    pool.frame().membership.members_changed();
    follow(mail);
    pool.frame().notify(PoolEvent::WorkerDisabled { slot });
    if counts && one_less(&**pool) {
        dead_letter_deserted(&**pool);
    }
    true
}

/// These workers could not be started; until they are, their keys go to those that were.
pub(crate) fn give_keys_to_others(pool: &dyn AnyCore, not_started: &[usize]) {
    for slot in not_started {
        let place = pool.frame().membership.slots.at(*slot).details.lock();
        let is_there = place.status == Status::Live;
        let moved = if is_there { None } else { pool.move_keys(*slot, KeysTo::Others) };
        drop(place);
        follow(moved);
    }
}
