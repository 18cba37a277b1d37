//! Workers that rest: their slots wait for a supervisor.

use std::{hash::Hash, sync::atomic::Ordering};

use super::Core;
use crate::{
    Actor,
    pool::{
        restart::RestartLog,
        slot_state::{KILLED, REST, Status},
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// No worker has been started yet: each slot waits for the supervisor.
    pub(crate) fn rest_from_the_start(&self) {
        // Pairs with nothing: the pool has no task yet, and sees it by being spawned.
        self.controllers.supervised.store(true, Ordering::SeqCst);
        let member_list = self.membership.members.lock();
        for slot in member_list.slots() {
            self.membership.slots.at(slot).details.lock().status = Status::Disabled;
        }
        // Pairs with nothing: the pool has no task yet.
        self.membership.live.store(0, Ordering::SeqCst);
    }

    /// Slots that rest are about to get a worker, with budgets as if new. Returns them.
    pub(crate) fn wake_slots(&self) -> Vec<usize> {
        let member_list = self.membership.members.lock();
        let wake = |slot: &usize| {
            let mut details = self.membership.slots.at(*slot).details.lock();
            let rests = details.status == Status::Disabled;
            if rests {
                details.status = Status::Starting;
                details.told_started = false;
                details.restarts = RestartLog::default();
            }
            rests
        };
        let slots: Vec<usize> = member_list.slots().filter(wake).collect();
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(slots.len(), Ordering::SeqCst);
        drop(member_list);
        self.revive();
        slots
    }

    /// A worker that was told to rest has ended.
    pub(crate) fn rests(&self, slot: usize) {
        self.membership.slots.at(slot).done(REST | KILLED);
        if self.lay_off(slot) {
            self.lifecycle.progress.notify_waiters();
        }
    }

    /// Refuses messages until the supervisor starts the pool again; queued messages become
    /// dead letters.
    pub(crate) fn close_down(&self) {
        self.desert();
        if self.queue.permits.is_closed() {
            self.dead_letter_queued();
        }
    }

    /// A slot waits for its supervisor. Queued messages are kept, and the pool goes on accepting.
    /// False if the worker was to leave.
    pub(crate) fn lay_off(&self, slot: usize) -> bool {
        let mut details = self.membership.slots.at(slot).details.lock();
        if details.status == Status::Leaving {
            return false;
        }
        details.status = Status::Disabled;
        // Under the lock: from here on no worker is killed there.
        self.membership.slots.at(slot).done(KILLED);
        drop(details);
        // Pairs with the loads in `drain_until` and `is_over`: the caller notifies `progress`
        // afterwards, so a stop sees that no worker is left to drain the pool.
        self.membership.live.fetch_sub(1, Ordering::SeqCst);
        self.membership.members_changed();
        self.hand_over(slot);
        true
    }
}
