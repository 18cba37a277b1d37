//! Workers that rest: their slots wait until a supervisor, or the keeper of their pool, has
//! started.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::mpsc;

use super::{
    AnyCore,
    gate::{dead_letter_if_ruined, revive},
    members::{left, start_in, wake_slot},
};
use crate::pool::membership::slot_state::{KILLED, REST, Status};

/// No worker has been started yet: each slot waits until it is woken.
pub(crate) fn rest_slots(pool: &dyn AnyCore) {
    let member_list = pool.frame().membership.members.lock();
    for slot in member_list.slots() {
        pool.frame().membership.slots.at(slot).details.lock().status = Status::Disabled;
    }
    // Pairs with nothing: the pool has no task yet.
    pool.frame().membership.live.store(0, Ordering::SeqCst);
}

/// Wakes slots that rest: they get a worker, with full restart budgets. Returns them.
pub(crate) fn wake_slots(pool: &dyn AnyCore) -> Vec<usize> {
    let member_list = pool.frame().membership.members.lock();
    let slots: Vec<usize> =
        member_list.slots().filter(|slot| wake_slot(pool.frame(), *slot)).collect();
    drop(member_list);
    revive(pool);
    slots
}

/// A worker that was told to rest has ended.
pub(crate) fn rests(pool: &Arc<dyn AnyCore>, slot: usize) {
    if !lay_off(&**pool, slot) {
        return left(pool, slot, &pool.frame().lifecycle.reason_to_leave());
    }
    pool.frame().lifecycle.progress.notify_waiters();
    start_late(pool, slot);
    // Its message in hand may be waiting for a retry.
    dead_letter_if_ruined(&**pool);
}

/// Starts a worker in a slot that rests, if its supervisor has started the others while the
/// previous one was still busy.
fn start_late(pool: &Arc<dyn AnyCore>, slot: usize) {
    let escalation = pool.frame().controllers.escalation.lock();
    // Under the lock: a supervisor that suspends the pool takes this away before it checks which
    // workers are to rest.
    let wakes = escalation.is_some()
        && pool.frame().lifecycle.check_running().is_ok()
        && wake_slot(pool.frame(), slot);
    drop(escalation);
    if wakes {
        revive(&**pool);
        start_in(pool, &[slot], &mpsc::unbounded_channel().0);
    }
}

/// A slot waits for its supervisor. Queued messages are kept, and the pool still accepts more.
/// Returns false if the worker was to leave.
pub(crate) fn lay_off(pool: &dyn AnyCore, slot: usize) -> bool {
    let mut details = pool.frame().membership.slots.at(slot).details.lock();
    if details.status == Status::Leaving {
        return false;
    }
    details.status = Status::Disabled;
    // Under the lock: from now on no worker there is killed, or told to rest.
    pool.frame().membership.slots.at(slot).done(REST | KILLED);
    if !std::mem::take(&mut details.given_up) {
        // Pairs with the loads in `drain_until` and `is_over`: the caller notifies `progress`
        // afterwards, so a stop sees that no worker is left to drain the pool.
        pool.frame().membership.live.fetch_sub(1, Ordering::SeqCst);
    }
    drop(details);
    pool.frame().membership.members_changed();
    pool.hand_over(slot);
    true
}
