//! The workers of a pool: their slots, their mailboxes, and who may be chosen.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize},
};

use parking_lot::{Mutex, RwLock};

use super::{
    crew_list::CrewList, mailbox::Mailbox, roster::Roster, seat::Seat, seats::Seats,
    settings::Settings, starts::Starts,
};
use crate::Actor;

/// Where a worker's own mailbox lies, once there is one.
pub(crate) type Desk<A, K> = Mutex<Option<Arc<Mailbox<A, K>>>>;

/// The workers of a pool: their slots, their mailboxes, and who may be chosen.
pub(crate) struct Membership<A: Actor, K> {
    /// One per worker there has been at the same time.
    pub(crate) seats: Seats<Arc<Seat>>,
    /// Which slots have a worker, and how many there may be.
    pub(crate) roster: Mutex<Roster>,
    /// The mailboxes of single workers, where they have one.
    pub(crate) desks: Seats<Desk<A, K>>,
    /// For how many messages of each worker there is room; 0 where the capacity was given in all. Written under the lock of
    /// `roster`.
    pub(crate) mailbox_each: AtomicUsize,
    /// Who may be chosen by a policy.
    pub(crate) crew: RwLock<Arc<CrewList<A, K>>>,
    /// How often somebody has come or gone: `crew` is of one such moment.
    pub(crate) crew_changes: AtomicU64,
    /// Workers that start, for whoever waits for them.
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
}
