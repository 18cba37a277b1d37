//! The workers of a pool: their slots, which slots have one, and the callers that wait for starts.

pub(crate) mod adopted_member;
pub(crate) mod live_members;
pub(crate) mod mailbox;
pub(crate) mod member_list;
pub(crate) mod not_ready;
pub(crate) mod restart;
pub(crate) mod slot_state;
pub(crate) mod starts;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use greenroom_queue::lock::Mutex;
use greenroom_queue::per_slot::PerSlot;
use tokio::task::AbortHandle;

use super::builder::config::SizeConfig;
use member_list::MemberList;
use slot_state::{KILLED, SlotState};
use starts::Starts;

/// One slot per worker, for the most workers there have been at one time.
pub(crate) type Slots = PerSlot<Arc<SlotState>>;

/// The workers of a pool: their slots, which slots have one, and the callers that wait for starts.
pub(crate) struct Membership {
    /// One slot per worker, for the most workers there have been at one time.
    pub(crate) slots: Slots,
    /// Which slots have a worker, and how many there may be.
    pub(crate) members: Mutex<MemberList>,
    /// The room for messages per worker; 0 if the capacity was set in total. Written under the lock
    /// of `members`.
    pub(crate) mailbox_each: AtomicUsize,
    /// How often a worker has joined or gone: a list of `live_members` belongs to one such number.
    pub(crate) member_changes: AtomicU64,
    /// Starts of workers, for callers that wait for them.
    pub(crate) starts: Starts,
    /// The number of workers whose slot is not disabled.
    pub(crate) live: AtomicUsize,
    /// Tasks that have lost their slot to others, and may still run a `stopped` hook.
    parting: Mutex<Vec<AbortHandle>>,
}

impl Membership {
    pub(super) fn new(size: &SizeConfig) -> Self {
        // A capacity that was set in total does not follow the size.
        let mailbox_each = if size.capacity.is_none() { size.mailbox } else { 0 };
        Self {
            slots: PerSlot::new(size.workers),
            members: Mutex::new(MemberList::new(size.workers, size.bounds.clone())),
            mailbox_each: AtomicUsize::new(mailbox_each),
            member_changes: AtomicU64::new(0),
            starts: Starts::default(),
            live: AtomicUsize::new(size.workers),
            parting: Mutex::default(),
        }
    }

    /// A worker has joined or gone.
    pub(crate) fn members_changed(&self) {
        // Pairs with the loads in `live_members`, `hold_back`, `ask_again` and `sweep_held`:
        // otherwise a policy would choose from an old list, or a message would be held that the new
        // worker could have.
        self.member_changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The task with this number is now the worker of a slot, unless the next one has been started
    /// since. A task that was killed before its handle was stored is dropped at once.
    pub(crate) fn works_as(&self, slot: usize, number: u64, task: AbortHandle) {
        let slot_state = self.slots.at(slot);
        let mut details = slot_state.details.lock();
        // Pairs with the `fetch_add` in `spawn_worker`: a task that starts later takes this lock
        // later, or its number is seen here. Otherwise a kill would abort a task that has ended.
        if slot_state.tasks.load(Ordering::SeqCst) != number {
            return self.note_parting(Some(task));
        }
        self.note_parting(details.abort.replace(task.clone()));
        drop(details);
        if slot_state.has(KILLED) {
            task.abort();
        }
    }

    /// A task has lost its slot: a stop reaches it here. Called under the lock of the slot's
    /// details, so that a stop finds it there or here.
    pub(crate) fn note_parting(&self, task: Option<AbortHandle>) {
        let Some(task) = task.filter(|task| !task.is_finished()) else { return };
        let mut parting = self.parting.lock();
        parting.retain(|task| !task.is_finished());
        parting.push(task);
    }

    /// The number of workers that the pool is set to have, started or not.
    pub(crate) fn size(&self) -> usize {
        self.members.lock().len()
    }

    /// The number of workers that have a message in hand.
    pub(crate) fn busy(&self) -> usize {
        self.slots.iter().filter(|slot_state| slot_state.is_busy()).count()
    }

    /// The number of attempts that workers have begun.
    pub(crate) fn started(&self) -> u64 {
        self.slots
            .iter()
            .map(|slot_state| slot_state.counters.started.load(Ordering::Relaxed))
            .sum()
    }

    /// The number of attempts that have ended. Of a batch in hand, all but one message count as
    /// ended.
    pub(crate) fn ended(&self) -> u64 {
        let (started, busy) = self.slots.iter().fold((0, 0), |(started, busy), slot_state| {
            let of_slot = slot_state.counters.started.load(Ordering::Relaxed);
            (started + of_slot, busy + u64::from(slot_state.is_busy()))
        });
        started.saturating_sub(busy)
    }

    /// Drops what these workers run at its next await: in a handler, the message in hand. A worker
    /// between two awaits is not interrupted.
    pub(crate) fn abort(&self, workers: &[usize]) {
        for worker in workers {
            let abort = self.slots.at(*worker).details.lock().abort.clone();
            if let Some(abort) = abort {
                abort.abort();
            }
        }
    }

    /// Like `abort`, for the `stopped` hooks of workers that have lost their slots.
    pub(crate) fn abort_parting(&self) {
        let parting = std::mem::take(&mut *self.parting.lock());
        parting.iter().for_each(AbortHandle::abort);
    }

    /// Like `abort`, for everything that the pool runs.
    pub(crate) fn abort_all(&self) {
        self.abort(&(0..self.slots.len()).collect::<Vec<_>>());
        self.abort_parting();
    }
}
