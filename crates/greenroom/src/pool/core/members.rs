//! Workers that join a running pool, and workers that leave it.

use std::{
    hash::Hash,
    sync::{Arc, Weak, atomic::Ordering},
};

use greenroom_queue::lock::{Mutex, MutexGuard};

use super::Core;
use crate::{
    Actor, Address, ExitReason, PoolEvent,
    pool::{
        AdminError,
        admin::change::{Outcomes, SlotOutcome},
        membership::{
            member_list::MemberList,
            restart::RestartLog,
            slot_state::{KILLED, LEAVE, REST, SlotDetails, Status},
        },
        worker::{self, task_guard::TaskGuard},
    },
    pool_events::ResizeReason,
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    /// Starts a worker in each of these slots, off every path of messages.
    pub(crate) fn start_in(self: &Arc<Self>, slots: &[usize], outcomes: &Outcomes) {
        for slot in slots {
            self.spawn_task(*slot, worker::run(TaskGuard::new(self), *slot, outcomes.clone()));
        }
    }

    /// Gives the worker in this slot a task that does its work.
    pub(crate) fn spawn_task(&self, slot: usize, work: impl Future<Output = ()> + Send + 'static) {
        // Pairs with the load in `works_as`, under the lock of the slot's details: a handle that
        // comes late is known to be of an earlier task. Otherwise a kill would abort a task that
        // has ended.
        let number = self.membership.slots.at(slot).tasks.fetch_add(1, Ordering::SeqCst) + 1;
        self.membership.works_as(slot, number, self.env.spawn_boxed(work).abort_handle());
    }

    /// Adds workers. Returns their slots and the new size.
    pub(crate) fn hire(
        self: &Arc<Self>,
        workers: usize,
        why: ResizeReason,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, usize), AdminError> {
        self.hire_into(self.members()?, workers, why, outcomes)
    }

    fn hire_into(
        self: &Arc<Self>,
        mut member_list: MutexGuard<'_, MemberList>,
        workers: usize,
        why: ResizeReason,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, usize), AdminError> {
        let bounds = member_list.bounds();
        let size = member_list.len().saturating_add(workers);
        if size > *bounds.end() {
            return Err(AdminError::OutOfBounds { asked: size, bounds });
        }
        let mut slots = Vec::with_capacity(workers);
        for _ in 0..workers {
            slots.push(member_list.join());
        }
        self.make_slots(&member_list);
        for slot in &slots {
            self.membership.slots.at(*slot).details.lock().status = Status::Starting;
        }
        self.size_changed(member_list.len());
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(workers, Ordering::SeqCst);
        drop(member_list);
        self.serve_waiters();
        self.revive();
        self.notify_size(size - workers, size, why);
        for slot in &slots {
            self.notify(PoolEvent::WorkerAdded { slot: *slot });
        }
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
        if other.vtable.contains(self.identity()) {
            return Err(AdminError::ContainsItself);
        }
        let mut member_list = self.members()?;
        let bounds = member_list.bounds();
        if member_list.len() >= *bounds.end() {
            return Err(AdminError::OutOfBounds { asked: member_list.len() + 1, bounds });
        }
        let slot = member_list.join();
        self.make_slots(&member_list);
        let (size, vtable) = (member_list.len(), other.vtable());
        {
            let mut details = self.membership.slots.at(slot).details.lock();
            details.status = Status::Starting;
            details.adopted = Some(Arc::downgrade(&vtable));
        }
        self.size_changed(size);
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(1, Ordering::SeqCst);
        drop((member_list, adopting));
        self.revive();
        self.notify_size(size - 1, size, ResizeReason::Asked);
        self.notify(PoolEvent::WorkerAdded { slot });
        // Pairs with the load in `works_as`, as in `spawn_task`.
        let number = self.membership.slots.at(slot).tasks.fetch_add(1, Ordering::SeqCst) + 1;
        let run = worker::adopted::run(TaskGuard::new(self), slot, other, outcomes.clone());
        self.membership.works_as(slot, number, self.env.spawn_boxed(run).abort_handle());
        Ok((slot, size))
    }

    /// The members, as long as the pool runs: whoever changes them holds this lock throughout.
    fn members(&self) -> Result<MutexGuard<'_, MemberList>, AdminError> {
        let member_list = self.membership.members.lock();
        self.lifecycle.check_running()?;
        Ok(member_list)
    }

    fn make_slots(&self, member_list: &MemberList) {
        self.membership.slots.grow_to(member_list.made());
        self.membership.mailboxes.grow_to(member_list.made());
        self.handoff.slots.grow_to(member_list.made());
        self.queue.wake.grow_to(member_list.made());
    }

    /// True for this pool itself, and for those that it has adopted, and so on.
    pub(crate) fn contains_pool(&self, identity: usize) -> bool {
        for slot_state in self.membership.slots.iter() {
            let adopted = slot_state.details.lock().adopted.as_ref().and_then(Weak::upgrade);
            if adopted.is_some_and(|other| other.contains(identity)) {
                return true;
            }
        }
        identity == self.identity()
    }

    /// Tells workers to leave: those that are disabled first, then idle ones, then those that
    /// joined last. Returns their slots and the new size.
    pub(crate) fn dismiss(
        self: &Arc<Self>,
        workers: usize,
        why: ResizeReason,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, usize), AdminError> {
        self.dismiss_from(self.members()?, workers, why, outcomes)
    }

    fn dismiss_from(
        self: &Arc<Self>,
        mut member_list: MutexGuard<'_, MemberList>,
        workers: usize,
        why: ResizeReason,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, usize), AdminError> {
        let bounds = member_list.bounds();
        let workers = workers.min(member_list.len());
        if member_list.len() - workers < *bounds.start() {
            return Err(AdminError::OutOfBounds { asked: member_list.len() - workers, bounds });
        }
        let mut slots = self.first_to_leave(&member_list);
        slots.truncate(workers);
        for slot in &slots {
            member_list.leave(*slot);
        }
        let size = member_list.len();
        self.size_changed(size);
        drop(member_list);
        self.notify_size(size + workers, size, why);
        for slot in &slots {
            self.let_leave(*slot, outcomes);
        }
        Ok((slots, size))
    }

    /// All members, in the order in which they would leave.
    fn first_to_leave(&self, member_list: &MemberList) -> Vec<usize> {
        let (mut disabled, mut idle, mut busy) = (Vec::new(), Vec::new(), Vec::new());
        for slot in member_list.slots().rev() {
            let slot_state = self.membership.slots.at(slot);
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

    /// Adds or dismisses workers, until there are so many. Returns the slots of those that come and
    /// of those that go.
    pub(crate) fn resize(
        self: &Arc<Self>,
        workers: usize,
        outcomes: &Outcomes,
    ) -> Result<(Vec<usize>, Vec<usize>), AdminError> {
        let member_list = self.members()?;
        let (size, why) = (member_list.len(), ResizeReason::Asked);
        match workers.checked_sub(size) {
            Some(more) => {
                let (added, _) = self.hire_into(member_list, more, why, outcomes)?;
                Ok((added, Vec::new()))
            }
            None => {
                let (removed, _) = self.dismiss_from(member_list, size - workers, why, outcomes)?;
                Ok((Vec::new(), removed))
            }
        }
    }

    /// A member has gone by itself, however few are left. If it was the last, no successor is
    /// known: messages that are queued once it has left become dead letters, as when the last
    /// worker is disabled.
    pub(crate) fn drop_out(self: &Arc<Self>, slot: usize, outcomes: &Outcomes) {
        let mut member_list = self.membership.members.lock();
        if self.lifecycle.check_running().is_ok() && member_list.leave(slot) {
            let size = member_list.len();
            self.size_changed(size);
            drop(member_list);
            self.notify_size(size + 1, size, ResizeReason::Left);
            self.membership.slots.at(slot).details.lock().drops_out = true;
            self.let_leave(slot, outcomes);
        }
    }

    /// Tells one worker to leave.
    pub(crate) fn dismiss_one(
        self: &Arc<Self>,
        slot: usize,
        outcomes: &Outcomes,
    ) -> Result<usize, AdminError> {
        let mut member_list = self.members()?;
        let bounds = member_list.bounds();
        if member_list.has(slot) && member_list.len() <= *bounds.start() {
            return Err(AdminError::OutOfBounds { asked: member_list.len() - 1, bounds });
        }
        if !member_list.leave(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        let size = member_list.len();
        self.size_changed(size);
        drop(member_list);
        self.notify_size(size + 1, size, ResizeReason::Asked);
        self.let_leave(slot, outcomes);
        Ok(size)
    }

    /// Brings a disabled slot back, with a budget as if new.
    pub(crate) fn enable(
        self: &Arc<Self>,
        slot: usize,
        outcomes: &Outcomes,
    ) -> Result<usize, AdminError> {
        let member_list = self.members()?;
        if !member_list.has(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        let mut details = self.membership.slots.at(slot).details.lock();
        if details.status != Status::Disabled {
            return Err(AdminError::NotDisabled(slot));
        }
        details.status = Status::Starting;
        details.told_started = false;
        details.restarts = RestartLog::default();
        drop(details);
        // Pairs with the load in `desert`: it comes before `revive` takes the gate, so the pool
        // does not stay closed with a worker in it.
        self.membership.live.fetch_add(1, Ordering::SeqCst);
        let size = member_list.len();
        drop(member_list);
        self.revive();
        self.notify(PoolEvent::WorkerEnabled { slot });
        self.start_in(&[slot], outcomes);
        Ok(size)
    }

    fn let_leave(self: &Arc<Self>, slot: usize, outcomes: &Outcomes) {
        let slot_state = self.membership.slots.at(slot);
        let mut details = slot_state.details.lock();
        let before = std::mem::replace(&mut details.status, Status::Leaving);
        let counts = !std::mem::take(&mut details.given_up);
        details.on_left = Some(outcomes.clone());
        // Before the worker may leave with its keys: its slot may be another worker's
        // right afterwards.
        let migrated = self.gives_keys(slot);
        slot_state.order(LEAVE);
        if before == Status::Disabled {
            self.membership.note_parting(details.abort.take());
        }
        drop(details);
        self.membership.members_changed();
        self.migrated(migrated);
        if before == Status::Disabled {
            return self.left(slot, &ExitReason::Normal);
        }
        if counts {
            self.one_less();
        }
        self.membership.members_changed();
        self.queue.wake.call(slot, &self.clock.watchdog);
        self.lifecycle.over.notify_waiters();
        self.report_nothing_more();
    }

    /// If the pool has ended and its last task has gone, nobody reports that a worker has left:
    /// those who wait for that are told so.
    pub(crate) fn report_nothing_more(&self) {
        // Pairs with the store in `end`: a pool that has not ended may be without tasks and go on.
        let over = self.lifecycle.ended.load(Ordering::SeqCst);
        // Pairs with the `compare_exchange` in `TaskGuard::drop`, behind which the last task comes
        // here: it finds what `let_leave` noted under the lock of the details, or `let_leave`,
        // which took that lock later, sees 0. Otherwise a change is waited for to its deadline.
        let has_tasks = self.lifecycle.running.load(Ordering::SeqCst) > 0;
        if over && !has_tasks {
            for slot_state in self.membership.slots.iter() {
                let on_left = slot_state.details.lock().on_left.take();
                // Not under the lock: that wakes who waits.
                drop(on_left);
            }
        }
    }

    /// The worker of a slot has gone for good.
    pub(crate) fn left(self: &Arc<Self>, slot: usize, reason: &ExitReason) {
        self.hand_over(slot);
        let slot_state = self.membership.slots.at(slot);
        let mut details = slot_state.details.lock();
        let gone = std::mem::take(&mut *details);
        // Before the orders: pairs with the look at `LEAVE` in `drain_mailboxes`.
        let mailbox = self.take_mailbox(slot);
        slot_state.forget_orders();
        drop(details);
        self.clear_mailbox(mailbox, reason);
        slot_state.published.clear();
        self.membership.members.lock().vacate(slot);
        self.notify(PoolEvent::WorkerRemoved { slot });
        let SlotDetails { on_left, up, drops_out, .. } = gone;
        if up {
            self.controllers.notify_down(slot, reason);
        }
        self.settle_what_is_left(drops_out);
        if let Some(outcomes) = on_left {
            let _ = outcomes.send(SlotOutcome::Left(slot));
        }
    }

    /// Tells, once each time that the slot is taken, that its worker has started.
    pub(crate) fn notify_started(&self, slot: usize) {
        let mut details = self.membership.slots.at(slot).details.lock();
        let told = std::mem::replace(&mut details.told_started, true);
        drop(details);
        if !told {
            self.notify(PoolEvent::WorkerStarted { slot });
        }
    }

    /// A worker could not be started. It is tried again.
    pub(crate) fn start_failed(&self, slot: usize, error: String) {
        self.membership.starts.failed(&error);
        self.notify(PoolEvent::StartFailed { slot, error });
    }

    /// A worker runs. If that is known already, nothing follows.
    pub(crate) fn has_started(&self, slot: usize) {
        let mut details = self.membership.slots.at(slot).details.lock();
        let starts = details.status == Status::Starting;
        if starts {
            details.status = Status::Live;
        }
        let was_up = std::mem::replace(&mut details.up, true);
        // Under the lock: a worker that is to leave from here on gives its keys up again.
        let migrated = starts.then(|| self.takes_keys(slot));
        drop(details);
        if let Some(migrated) = migrated {
            self.migrated(migrated);
            self.membership.starts.one_more();
        }
        if was_up && !starts {
            return;
        }
        self.membership.members_changed();
        self.ask_again();
        self.controllers.notify_up(slot);
    }

    /// A worker does not run for a while. False when it is to leave instead.
    pub(crate) fn has_died(&self, slot: usize) {
        let mut details = self.membership.slots.at(slot).details.lock();
        if details.status == Status::Live {
            details.status = Status::Starting;
        }
        drop(details);
        self.membership.members_changed();
        self.hand_over(slot);
    }

    /// The budget of a slot is used up. Its worker has given up what it held. False if it was to
    /// leave anyway.
    pub(crate) fn disable(self: &Arc<Self>, slot: usize, reason: &ExitReason) -> bool {
        let migrated = self.gives_keys(slot);
        self.migrated(migrated);
        self.hand_over(slot);
        let slot_state = self.membership.slots.at(slot);
        let mut details = slot_state.details.lock();
        if details.status == Status::Leaving {
            return false;
        }
        details.status = Status::Disabled;
        slot_state.done(REST | KILLED);
        let counts = !std::mem::take(&mut details.given_up);
        // Under the lock: the next worker of the slot may be started right afterwards, and has a
        // mailbox of its own.
        let mailbox = self.take_mailbox(slot);
        drop(details);
        self.membership.members_changed();
        self.clear_mailbox(mailbox, reason);
        self.notify(PoolEvent::WorkerDisabled { slot });
        if counts && self.one_less() {
            self.dead_letter_deserted();
        }
        true
    }
}
