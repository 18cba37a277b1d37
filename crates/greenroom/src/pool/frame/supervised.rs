//! The effects of a pool's supervisor on its workers.

use std::sync::atomic::Ordering;

use super::{AnyCore, gate::desert, rest::rest_slots};
use crate::pool::membership::slot_state::{REST, Status};

/// No worker has been started yet: each slot waits for the supervisor.
pub(crate) fn rest_from_the_start(pool: &dyn AnyCore) {
    // Pairs with nothing: the pool has no task yet, and each task sees it by being spawned.
    pool.frame().controllers.supervised.store(true, Ordering::SeqCst);
    rest_slots(pool);
}

/// Tells a worker to end after the message in hand: its slot is to rest.
pub(crate) fn tell_to_rest(pool: &dyn AnyCore, slot: usize) {
    let slot_state = pool.frame().membership.slots.at(slot);
    let details = slot_state.details.lock();
    // Under the lock: a slot that already rests would keep the order for its next worker.
    if matches!(details.status, Status::Live | Status::Starting) {
        slot_state.order(REST);
    }
    drop(details);
    pool.wake().call(slot, &pool.frame().clock.watchdog);
}

/// Refuses messages until the supervisor starts the pool again; queued messages become dead
/// letters. A worker that was told to rest may still be busy: it starts nothing more.
pub(crate) fn close_down(pool: &dyn AnyCore) {
    give_up_busy(pool);
    desert(pool);
    if pool.permits().is_closed() {
        pool.dead_letter_queued();
    }
    // A stop does not wait for workers that do not count.
    pool.frame().lifecycle.progress.notify_waiters();
}

/// Workers that were told to rest and are still busy no longer count.
fn give_up_busy(pool: &dyn AnyCore) {
    for slot in active_slots(pool) {
        let slot_state = pool.frame().membership.slots.at(slot);
        let mut details = slot_state.details.lock();
        let is_active = matches!(details.status, Status::Live | Status::Starting);
        if is_active && slot_state.has(REST) && !details.given_up {
            details.given_up = true;
            // Pairs with the load in `revive`, as in `one_less`: `desert` follows.
            pool.frame().membership.live.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Slots with a worker that runs or is being started.
pub(crate) fn active_slots(pool: &dyn AnyCore) -> Vec<usize> {
    let membership = &pool.frame().membership;
    let active = |slot: &usize| {
        matches!(membership.slots.at(*slot).status(), Status::Live | Status::Starting)
    };
    membership.members.lock().slots().filter(active).collect()
}
