//! What a worker has of its own in the pool: its mailbox, and the place where callers hand it work.

use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

use greenroom_queue::{lock::Mutex, per_slot::PerSlot};

use super::{handoff::HandoffSlotOf, membership::mailbox::Mailbox};
use crate::Actor;

/// What a worker has of its own. It belongs to the slot, and outlives the worker.
pub(crate) struct Desk<A: Actor, K> {
    /// Once there is one.
    pub(crate) mailbox: Mutex<Option<Arc<Mailbox<A, K>>>>,
    /// In a pool that uses it.
    pub(crate) handoff: OnceLock<Arc<HandoffSlotOf<A>>>,
}

impl<A: Actor, K> Default for Desk<A, K> {
    fn default() -> Self {
        Self { mailbox: Mutex::default(), handoff: OnceLock::new() }
    }
}

/// The desks of a pool, one for each slot, made when they are first needed. The row knows no type:
/// it is compiled once.
pub(crate) struct Desks(PerSlot<OnceLock<AnyDesk>>);

type AnyDesk = Box<dyn Any + Send + Sync>;

impl Desks {
    pub(crate) fn new(slots: usize) -> Self {
        Self(PerSlot::new(slots))
    }

    pub(crate) fn grow_to(&self, slots: usize) {
        self.0.grow_to(slots);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The desk of this slot.
    #[inline]
    #[expect(clippy::expect_used, reason = "all desks of a pool are of one type")]
    pub(crate) fn at<D: Any + Default + Send + Sync>(&self, slot: usize) -> &D {
        let cell = self.0.at(slot);
        let desk = cell.get().unwrap_or_else(|| fill(cell, Box::new(D::default())));
        desk.downcast_ref().expect("a desk of this pool")
    }
}

/// Whoever comes first has made it.
#[cold]
fn fill(cell: &OnceLock<AnyDesk>, desk: AnyDesk) -> &AnyDesk {
    cell.get_or_init(|| desk)
}
