//! The workers of a pool: their slots, their mailboxes, and which may be chosen.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tokio::task::AbortHandle;

use super::{
    crew_list::CrewList,
    mailbox::Mailbox,
    roster::Roster,
    seat::{KILLED, Seat, Status},
    seats::Seats,
    settings::Settings,
    starts::Starts,
};
use crate::Actor;

/// The place of a worker's own mailbox, once there is one.
pub(crate) type Desk<A, K> = Mutex<Option<Arc<Mailbox<A, K>>>>;

/// The workers of a pool: their slots, their mailboxes, and which may be chosen.
pub(crate) struct Membership<A: Actor, K> {
    /// One per worker there has been at the same time.
    pub(crate) seats: Seats<Arc<Seat>>,
    /// Which slots have a worker, and how many there may be.
    pub(crate) roster: Mutex<Roster>,
    /// The mailboxes of single workers, if they have one.
    pub(crate) desks: Seats<Desk<A, K>>,
    /// The room for messages per worker; 0 if the capacity was given in all. Written under the lock
    /// of `roster`.
    pub(crate) mailbox_each: AtomicUsize,
    /// The workers that a policy may choose.
    pub(crate) crew: RwLock<Arc<CrewList<A, K>>>,
    /// How often a worker has come or gone: `crew` is of one such moment.
    pub(crate) crew_changes: AtomicU64,
    /// Starts of workers, for callers that wait for them.
    pub(crate) starts: Starts,
    /// Workers whose slot is not disabled.
    pub(crate) live: AtomicUsize,
}

impl<A: Actor, K> Membership<A, K> {
    pub(super) fn new(settings: &Settings<A, K>) -> Self {
        let size = &settings.config.size;
        // A capacity that was given in all does not follow the size.
        let mailbox_each = if size.capacity.is_none() { size.mailbox } else { 0 };
        Self {
            seats: Seats::new(size.workers),
            roster: Mutex::new(Roster::new(size.workers, size.bounds.clone())),
            desks: Seats::new(size.workers),
            mailbox_each: AtomicUsize::new(mailbox_each),
            crew: RwLock::default(),
            crew_changes: AtomicU64::new(0),
            starts: Starts::default(),
            live: AtomicUsize::new(size.workers),
        }
    }

    /// A worker has come or gone.
    pub(crate) fn crew_changed(&self) {
        // Pairs with the loads in `crew`, `hold_back`, `ask_again` and `sweep_held`: otherwise a
        // policy chooses from an old list, or a message is held that the new worker could have.
        self.crew_changes.fetch_add(1, Ordering::SeqCst);
    }

    /// The task with this number is the worker of a slot now, unless the next one has been begun
    /// since. A task that was killed before its handle was stored is dropped at once.
    pub(crate) fn works_as(&self, slot: usize, number: u64, task: AbortHandle) {
        let seat = self.seats.at(slot);
        let mut place = seat.place.lock();
        // Pairs with the `fetch_add` in `employ`: a task that is begun later takes this lock later,
        // or its number is seen here. Otherwise a kill would abort a task that has ended.
        if seat.tasks.load(Ordering::SeqCst) != number {
            return;
        }
        place.abort = Some(task.clone());
        drop(place);
        if seat.has(KILLED) {
            task.abort();
        }
    }

    /// Workers that the pool is set to have, started or not.
    pub(crate) fn size(&self) -> usize {
        self.roster.lock().len()
    }

    /// Workers that have a message in hand.
    pub(crate) fn busy(&self) -> usize {
        self.seats.iter().filter(|seat| seat.is_busy()).count()
    }

    /// Attempts that workers have begun.
    pub(crate) fn started(&self) -> u64 {
        self.seats.iter().map(|seat| seat.tally.started.load(Ordering::Relaxed)).sum()
    }

    /// Attempts that have ended. Of a batch in hand, all but one message count as ended.
    pub(crate) fn ended(&self) -> u64 {
        let (started, busy) = self.seats.iter().fold((0, 0), |(started, busy), seat| {
            let of_seat = seat.tally.started.load(Ordering::Relaxed);
            (started + of_seat, busy + u64::from(seat.is_busy()))
        });
        started.saturating_sub(busy)
    }

    /// Slots with a worker that runs or is being started.
    pub(crate) fn active_slots(&self) -> Vec<usize> {
        let active =
            |slot: &usize| matches!(self.seats.at(*slot).status(), Status::Live | Status::Starting);
        self.roster.lock().members().filter(active).collect()
    }

    /// Drops what these workers run at its next await. In a handler that is the message in hand; a
    /// worker between two awaits is not interrupted.
    pub(crate) fn abort(&self, workers: impl Iterator<Item = usize>) {
        for worker in workers {
            let abort = self.seats.at(worker).place.lock().abort.clone();
            if let Some(abort) = abort {
                abort.abort();
            }
        }
    }
}
