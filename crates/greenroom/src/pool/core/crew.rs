//! Workers that join a running pool, and workers that leave it.

use std::{
    hash::Hash,
    ops::RangeInclusive,
    sync::{Arc, atomic::Ordering},
};

use parking_lot::Mutex;

use super::Core;
use crate::{
    Actor, Address, ExitReason, PoolEvent,
    pool::{
        AdminError,
        change::{Outcomes, SlotOutcome},
        employed::Employed,
        restart::RestartLog,
        roster::Roster,
        seat::{KILLED, LEAVE, Place, REST, Seat, Status},
        worker,
        worker_task::Task,
    },
    pool_events::ResizeReason,
    size::MAX_WORKERS,
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Starts a worker in each of these slots, off every path of messages.
    pub(crate) fn start_in(self: &Arc<Self>, slots: &[usize], outcomes: &Outcomes) {
        for slot in slots {
            self.employ(*slot, worker::run(Employed::new(self), *slot, outcomes.clone()));
        }
    }

    /// Gives the worker in this slot a task that does its work.
    pub(crate) fn employ(&self, slot: usize, work: impl Future<Output = ()> + Send + 'static) {
        // Pairs with the load in `works_as`, under the lock of the place: a handle that comes late
        // is known to be of an earlier task. Otherwise a kill would abort a task that has ended.
        let number = self.membership.seats.at(slot).tasks.fetch_add(1, Ordering::SeqCst) + 1;
        let task = match self.settings.config.handling.calls_in_place {
            true => self.env.runtime.spawn(Task::new(self.membership.seats.at(slot), work)),
            false => self.env.runtime.spawn(work),
        };
        self.membership.works_as(slot, number, task.abort_handle());
    }

    /// Adds workers. Returns their slots and the new size.
    pub(crate) fn hire(
        self: &Arc<Self>,
        workers: usize,
        why: ResizeReason,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, usize), AdminError> {
        let mut roster = self.membership.roster.lock();
        self.lifecycle.check_running()?;
        let bounds = roster.bounds();
        let size = roster.len().saturating_add(workers);
        if size > *bounds.end() {
            return Err(AdminError::OutOfBounds { asked: size, bounds });
        }
        let slots: Vec<usize> = (0..workers).map(|_| roster.join()).collect();
        self.make_seats(&roster);
        slots.iter().for_each(|slot| {
            self.membership.seats.at(*slot).place.lock().status = Status::Starting
        });
        self.size_changed(roster.len());
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(workers, Ordering::SeqCst);
        drop(roster);
        self.serve_waiters();
        self.revive();
        self.tell_size(size - workers, size, why);
        slots.iter().for_each(|slot| self.tell(PoolEvent::WorkerAdded { slot: *slot }));
        self.start_in(&slots, outcomes);
        Ok((slots, size))
    }

    /// Takes another actor or pool in as a worker. Returns its slot and the new size.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        other: Address<A::Message, A::Reply, A::Error>,
        outcomes: &Outcomes,
    ) -> Result<(usize, usize), AdminError> {
        /// Two that adopt each other must not both find that the other does not contain them yet.
        static ADOPTING: Mutex<()> = Mutex::new(());
        if self.keyed() || self.routing.sticky.is_some() {
            return Err(AdminError::Ordered);
        }
        let adopting = ADOPTING.lock();
        if other.door.contains(self.identity()) {
            return Err(AdminError::ContainsItself);
        }
        let mut roster = self.membership.roster.lock();
        self.lifecycle.check_running()?;
        let bounds = roster.bounds();
        if roster.len() >= *bounds.end() {
            return Err(AdminError::OutOfBounds { asked: roster.len() + 1, bounds });
        }
        let slot = roster.join();
        self.make_seats(&roster);
        let (size, door) = (roster.len(), other.door());
        {
            let mut place = self.membership.seats.at(slot).place.lock();
            place.status = Status::Starting;
            place.adopted = Some(Arc::downgrade(&door));
        }
        self.size_changed(size);
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(1, Ordering::SeqCst);
        drop((roster, adopting));
        self.revive();
        self.tell_size(size - 1, size, ResizeReason::Asked);
        self.tell(PoolEvent::WorkerAdded { slot });
        // Pairs with the load in `works_as`, as in `employ`.
        let number = self.membership.seats.at(slot).tasks.fetch_add(1, Ordering::SeqCst) + 1;
        let run = worker::adopted::run(Employed::new(self), slot, other, outcomes.clone());
        self.membership.works_as(slot, number, self.env.runtime.spawn(run).abort_handle());
        Ok((slot, size))
    }

    fn make_seats(&self, roster: &Roster) {
        self.membership.seats.grow_to(roster.made());
        self.membership.desks.grow_to(roster.made());
        self.handoff.hatches.grow_to(roster.made());
        self.queue.wake.grow_to(roster.made());
    }

    /// True for this pool itself, and for those that it has adopted, and so on.
    pub(crate) fn contains_pool(&self, identity: usize) -> bool {
        let adopted = |seat: &Arc<Seat>| seat.place.lock().adopted.as_ref()?.upgrade();
        let adopted: Vec<_> = self.membership.seats.iter().filter_map(adopted).collect();
        identity == self.identity() || adopted.iter().any(|other| other.contains(identity))
    }

    /// Tells workers to leave: those that are disabled first, then idle ones, then those that
    /// joined last. Returns their slots and the new size.
    pub(crate) fn dismiss(
        self: &Arc<Self>,
        workers: usize,
        why: ResizeReason,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, usize), AdminError> {
        let mut roster = self.membership.roster.lock();
        self.lifecycle.check_running()?;
        let bounds = roster.bounds();
        let workers = workers.min(roster.len());
        if roster.len() - workers < *bounds.start() {
            return Err(AdminError::OutOfBounds { asked: roster.len() - workers, bounds });
        }
        let mut slots: Vec<usize> = roster.members().rev().collect();
        // Each is looked at once: a worker may begin or end a message in between.
        slots.sort_by_cached_key(|slot| {
            let seat = self.membership.seats.at(*slot);
            let is_disabled = seat.place.lock().status == Status::Disabled;
            (!is_disabled, seat.is_busy())
        });
        slots.truncate(workers);
        slots.iter().for_each(|slot| {
            roster.leave(*slot);
        });
        let size = roster.len();
        self.size_changed(size);
        drop(roster);
        self.tell_size(size + workers, size, why);
        slots.iter().for_each(|slot| self.let_leave(*slot, outcomes));
        Ok((slots, size))
    }

    /// A member has gone by itself, however few are left. If it was the last, no successor is
    /// known: messages that are queued once it has left become dead letters, as when the last
    /// worker is disabled.
    pub(crate) fn drop_out(self: &Arc<Self>, slot: usize, outcomes: &Outcomes) {
        let mut roster = self.membership.roster.lock();
        if self.lifecycle.check_running().is_ok() && roster.leave(slot) {
            let size = roster.len();
            self.size_changed(size);
            drop(roster);
            self.tell_size(size + 1, size, ResizeReason::Left);
            self.membership.seats.at(slot).place.lock().drops_out = true;
            self.let_leave(slot, outcomes);
        }
    }

    /// Tells one worker to leave.
    pub(crate) fn dismiss_one(
        self: &Arc<Self>,
        slot: usize,
        outcomes: &Outcomes,
    ) -> Result<usize, AdminError> {
        let mut roster = self.membership.roster.lock();
        self.lifecycle.check_running()?;
        let bounds = roster.bounds();
        if roster.has(slot) && roster.len() <= *bounds.start() {
            return Err(AdminError::OutOfBounds { asked: roster.len() - 1, bounds });
        }
        if !roster.leave(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        let size = roster.len();
        self.size_changed(size);
        drop(roster);
        self.tell_size(size + 1, size, ResizeReason::Asked);
        self.let_leave(slot, outcomes);
        Ok(size)
    }

    /// Brings a disabled slot back, with a budget as if new.
    pub(crate) fn enable(
        self: &Arc<Self>,
        slot: usize,
        outcomes: &Outcomes,
    ) -> Result<usize, AdminError> {
        let roster = self.membership.roster.lock();
        self.lifecycle.check_running()?;
        if !roster.has(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        let mut place = self.membership.seats.at(slot).place.lock();
        if place.status != Status::Disabled {
            return Err(AdminError::NotDisabled(slot));
        }
        place.status = Status::Starting;
        place.told_started = false;
        place.restarts = RestartLog::default();
        drop(place);
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(1, Ordering::SeqCst);
        let size = roster.len();
        drop(roster);
        self.revive();
        self.tell(PoolEvent::WorkerEnabled { slot });
        self.start_in(&[slot], outcomes);
        Ok(size)
    }

    /// How many workers there may be, from now on.
    pub(crate) fn set_bounds(&self, workers: RangeInclusive<usize>) -> Result<(), AdminError> {
        let mut roster = self.membership.roster.lock();
        self.lifecycle.check_running()?;
        if self.settings.config.size.autoscale.is_some() {
            return Err(AdminError::Autoscaled);
        }
        if workers.is_empty() || *workers.end() > MAX_WORKERS {
            let bounds = 0..=MAX_WORKERS;
            return Err(AdminError::OutOfBounds { asked: *workers.end(), bounds });
        }
        roster.set_bounds(workers);
        Ok(())
    }

    fn let_leave(self: &Arc<Self>, slot: usize, outcomes: &Outcomes) {
        let seat = self.membership.seats.at(slot);
        let mut place = seat.place.lock();
        let before = std::mem::replace(&mut place.status, Status::Leaving);
        place.on_left = Some(outcomes.clone());
        // Before the worker may leave with its keys: its slot may be another worker's
        // right afterwards.
        let carried = self.gives_keys(slot);
        seat.order(LEAVE);
        drop(place);
        self.membership.crew_changed();
        self.carried(carried);
        if before == Status::Disabled {
            return self.left(slot, &ExitReason::Normal);
        }
        self.one_less();
        self.membership.crew_changed();
        self.queue.wake.call(slot, &self.clock.bell);
        self.lifecycle.over.notify_waiters();
    }

    /// The worker of a slot has gone for good.
    pub(crate) fn left(self: &Arc<Self>, slot: usize, reason: &ExitReason) {
        self.hand_over(slot);
        let seat = self.membership.seats.at(slot);
        let mut place = seat.place.lock();
        let gone = std::mem::take(&mut *place);
        seat.forget_orders();
        let mailbox = self.membership.desks.at(slot).lock().take();
        drop(place);
        self.clear_desk(mailbox, reason);
        seat.published.clear();
        self.membership.roster.lock().vacate(slot);
        self.tell(PoolEvent::WorkerRemoved { slot });
        let Place { on_left, up, drops_out, .. } = gone;
        if up {
            self.controllers.tell_down(slot, reason);
        }
        // A pool that is stopped gives back unhandled messages.
        let is_running = self.lifecycle.check_running().is_ok();
        // Pairs with the `fetch_sub` in `one_less`, of the workers that left before: otherwise
        // queued messages are never buried.
        if drops_out && is_running && self.membership.live.load(Ordering::SeqCst) == 0 {
            self.bury_deserted();
        } else if is_running {
            self.bury_if_ruined();
        }
        if let Some(outcomes) = on_left {
            let _ = outcomes.send(SlotOutcome::Left(slot));
        }
    }

    /// Tells, once each time that the slot is taken, that its worker has started.
    pub(crate) fn tell_started(&self, slot: usize) {
        let mut place = self.membership.seats.at(slot).place.lock();
        let told = std::mem::replace(&mut place.told_started, true);
        drop(place);
        if !told {
            self.tell(PoolEvent::WorkerStarted { slot });
        }
    }

    /// A worker could not be started. It is tried again.
    pub(crate) fn start_failed(&self, slot: usize, error: String) {
        self.membership.starts.failed(&error);
        self.tell(PoolEvent::StartFailed { slot, error });
    }

    /// A worker runs. If that is known already, nothing follows.
    pub(crate) fn has_started(&self, slot: usize) {
        let mut place = self.membership.seats.at(slot).place.lock();
        let starts = place.status == Status::Starting;
        if starts {
            place.status = Status::Live;
        }
        let was_up = std::mem::replace(&mut place.up, true);
        // Under the lock: a worker that is to leave from here on gives its keys up again.
        let carried = starts.then(|| self.takes_keys(slot));
        drop(place);
        if let Some(carried) = carried {
            self.carried(carried);
            self.membership.starts.one_more();
        }
        if was_up && !starts {
            return;
        }
        self.membership.crew_changed();
        if self.settings.functions.dispatch.is_some() && self.routing.sticky.is_none() {
            self.ask_again();
        }
        self.controllers.tell_up(slot);
    }

    /// A worker does not run for a while. False when it is to leave instead.
    pub(crate) fn has_died(&self, slot: usize) {
        let mut place = self.membership.seats.at(slot).place.lock();
        if place.status == Status::Live {
            place.status = Status::Starting;
        }
        drop(place);
        self.membership.crew_changed();
        self.hand_over(slot);
    }

    /// Refuses messages if there is no worker, unless the pool is to hold them.
    pub(crate) fn close_if_deserted(&self) {
        if !self.settings.config.size.holds_when_empty {
            self.desert();
        }
    }

    /// One worker less that may handle messages. Without any, the pool refuses messages, unless it
    /// is to hold them.
    fn one_less(&self) -> bool {
        // Pairs with the load in `revive`: it comes before `desert` takes the gate, so the pool
        // does not stay open without a worker. One caller alone sees the last worker go.
        let last = self.membership.live.fetch_sub(1, Ordering::SeqCst) == 1;
        if last {
            self.close_if_deserted();
        }
        last
    }

    /// No worker has been started yet: each slot waits for the supervisor.
    pub(crate) fn rest_from_the_start(&self) {
        // Pairs with nothing: the pool has no task yet, and sees it by being spawned.
        self.controllers.supervised.store(true, Ordering::SeqCst);
        let roster = self.membership.roster.lock();
        for slot in roster.members() {
            self.membership.seats.at(slot).place.lock().status = Status::Disabled;
        }
        // Pairs with nothing: the pool has no task yet.
        self.membership.live.store(0, Ordering::SeqCst);
    }

    /// Slots that rest are about to get a worker, with budgets as if new. Returns them.
    pub(crate) fn rouse_slots(&self) -> Vec<usize> {
        let roster = self.membership.roster.lock();
        let rouse = |slot: &usize| {
            let mut place = self.membership.seats.at(*slot).place.lock();
            let rests = place.status == Status::Disabled;
            if rests {
                place.status = Status::Starting;
                place.told_started = false;
                place.restarts = RestartLog::default();
            }
            rests
        };
        let slots: Vec<usize> = roster.members().filter(rouse).collect();
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(slots.len(), Ordering::SeqCst);
        drop(roster);
        self.revive();
        slots
    }

    /// A worker that was told to rest has ended.
    pub(crate) fn rests(&self, slot: usize) {
        self.membership.seats.at(slot).done(REST | KILLED);
        if self.lay_off(slot) {
            self.lifecycle.progress.notify_waiters();
        }
    }

    /// Refuses messages until the supervisor starts the pool again; queued messages become
    /// dead letters.
    pub(crate) fn close_down(&self) {
        self.desert();
        if self.queue.permits.is_closed() {
            self.bury_queued();
        }
    }

    /// A slot waits for its supervisor. Queued messages are kept, and the pool goes on accepting.
    /// False if the worker was to leave.
    pub(crate) fn lay_off(&self, slot: usize) -> bool {
        let mut place = self.membership.seats.at(slot).place.lock();
        if place.status == Status::Leaving {
            return false;
        }
        place.status = Status::Disabled;
        // Under the lock: from here on no worker is killed there.
        self.membership.seats.at(slot).done(KILLED);
        drop(place);
        // Pairs with the loads in `drain_until` and `is_over`: the caller notifies `progress`
        // afterwards, so a stop sees that no worker is left to drain the pool.
        self.membership.live.fetch_sub(1, Ordering::SeqCst);
        self.membership.crew_changed();
        self.hand_over(slot);
        true
    }

    /// The budget of a slot is used up. Its worker has given up what it held. False if it was to
    /// leave anyway.
    pub(crate) fn disable(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> bool {
        let carried = self.gives_keys(slot);
        self.carried(carried);
        self.hand_over(slot);
        let seat = self.membership.seats.at(slot);
        let mut place = seat.place.lock();
        if place.status == Status::Leaving {
            return false;
        }
        place.status = Status::Disabled;
        seat.done(KILLED);
        // Under the lock: the next worker of the slot may be started right afterwards, and has a
        // mailbox of its own.
        let mailbox = self.membership.desks.at(slot).lock().take();
        drop(place);
        self.membership.crew_changed();
        self.clear_desk(mailbox, reason);
        self.tell(PoolEvent::WorkerDisabled { slot });
        if self.one_less() {
            self.bury_deserted();
        }
        true
    }

    /// No worker is left, and none was asked for: queued messages are not handled any more, unless
    /// they are to be held.
    fn bury_deserted(&self) {
        if self.settings.config.size.holds_when_empty {
            return;
        }
        tracing::error!(
            pool = &*self.settings.config.name,
            "no worker is left; the pool refuses messages"
        );
        self.bury_queued();
        self.lifecycle.progress.notify_waiters();
    }
}
