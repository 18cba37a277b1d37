//! What the supervisor of a pool has done to its workers.

use std::{hash::Hash, sync::atomic::Ordering};

use super::Core;
use crate::{
    Actor,
    pool::membership::slot_state::{REST, Status},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// No worker has been started yet: each slot waits for the supervisor.
    pub(crate) fn rest_from_the_start(&self) {
        // Pairs with nothing: the pool has no task yet, and sees it by being spawned.
        self.controllers.supervised.store(true, Ordering::SeqCst);
        self.rest_slots();
    }

    /// Tells a worker to end after the message in hand: its slot is to rest.
    pub(crate) fn tell_to_rest(&self, slot: usize) {
        let slot_state = self.membership.slots.at(slot);
        let details = slot_state.details.lock();
        // Under the lock: a slot that rests already would keep the order for its next worker.
        if matches!(details.status, Status::Live | Status::Starting) {
            slot_state.order(REST);
        }
        drop(details);
        self.queue.wake.call(slot, &self.clock.watchdog);
    }

    /// Refuses messages until the supervisor starts the pool again; queued messages become
    /// dead letters. Also if a worker that was told to rest is still busy: it starts nothing more.
    pub(crate) fn close_down(&self) {
        self.give_up_busy();
        self.desert();
        if self.queue.permits.is_closed() {
            self.dead_letter_queued();
        }
    }

    /// Workers that were told to rest, and are busy, do not count any more.
    fn give_up_busy(&self) {
        for slot in self.active_slots() {
            let slot_state = self.membership.slots.at(slot);
            let mut details = slot_state.details.lock();
            let is_active = matches!(details.status, Status::Live | Status::Starting);
            if is_active && slot_state.has(REST) && !details.given_up {
                details.given_up = true;
                // Pairs with the load in `revive`, as in `one_less`: `desert` follows.
                self.membership.live.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Slots with a worker that runs or is being started.
    pub(crate) fn active_slots(&self) -> Vec<usize> {
        let active = |slot: &usize| {
            matches!(self.membership.slots.at(*slot).status(), Status::Live | Status::Starting)
        };
        self.membership.members.lock().slots().filter(active).collect()
    }
}
