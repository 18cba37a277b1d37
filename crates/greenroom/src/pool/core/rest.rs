//! Workers that rest: their slots wait for a supervisor, or for the keeper of their pool to start.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
};

use tokio::sync::mpsc;

use super::Core;
use crate::{
    Actor,
    pool::membership::{
        restart::RestartLog,
        slot_state::{KILLED, REST, Status},
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// No worker has been started yet: each slot waits until the slots are woken.
    pub(crate) fn rest_slots(&self) {
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
        let slots: Vec<usize> = member_list.slots().filter(|slot| self.wake_slot(*slot)).collect();
        drop(member_list);
        self.revive();
        slots
    }

    /// A slot is about to get a worker, with a budget as if new. False if it does not rest.
    fn wake_slot(&self, slot: usize) -> bool {
        let mut details = self.membership.slots.at(slot).details.lock();
        let rests = details.status == Status::Disabled;
        if rests {
            details.status = Status::Starting;
            details.told_started = false;
            details.restarts = RestartLog::default();
            // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the
            // pool does not stay closed with a worker in it.
            self.membership.live.fetch_add(1, Ordering::SeqCst);
        }
        rests
    }

    /// A worker that was told to rest has ended.
    pub(crate) fn rests(self: &Arc<Self>, slot: usize) {
        if !self.lay_off(slot) {
            return self.left(slot, &self.lifecycle.reason_to_leave());
        }
        self.lifecycle.progress.notify_waiters();
        self.start_late(slot);
        // What it had in hand may wait for its next attempt.
        self.dead_letter_if_ruined();
    }

    /// Starts a worker in a slot that rests, if its supervisor has started the others while the
    /// last one was still busy.
    fn start_late(self: &Arc<Self>, slot: usize) {
        let escalation = self.controllers.escalation.lock();
        // Under the lock: a supervisor that suspends the pool takes this away before it looks
        // which workers are to rest.
        let wakes =
            escalation.is_some() && self.lifecycle.check_running().is_ok() && self.wake_slot(slot);
        drop(escalation);
        if wakes {
            self.revive();
            self.start_in(&[slot], &mpsc::unbounded_channel().0);
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
        // Under the lock: from here on no worker is killed there, or told to rest.
        self.membership.slots.at(slot).done(REST | KILLED);
        if !std::mem::take(&mut details.given_up) {
            // Pairs with the loads in `drain_until` and `is_over`: the caller notifies `progress`
            // afterwards, so a stop sees that no worker is left to drain the pool.
            self.membership.live.fetch_sub(1, Ordering::SeqCst);
        }
        drop(details);
        self.membership.members_changed();
        self.hand_over(slot);
        true
    }
}
