//! The parts of a pool for each worker: its mailbox, and its handoff slot for callers.

use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

use greenroom_queue::{lock::Mutex, per_slot::PerSlot};

use super::{handoff::HandoffSlotOf, membership::mailbox::Mailbox};
use crate::Actor;

/// The parts for one worker. They belong to the slot, and outlive the worker.
pub(crate) struct Desk<A: Actor, K> {
    /// Present once it has been needed.
    pub(crate) mailbox: Mutex<Option<Arc<Mailbox<A, K>>>>,
    /// Present in a pool that uses it.
    pub(crate) handoff: OnceLock<Arc<HandoffSlotOf<A>>>,
}

impl<A: Actor, K> Default for Desk<A, K> {
    fn default() -> Self {
        Self { mailbox: Mutex::default(), handoff: OnceLock::new() }
    }
}

/// The desks of a pool, one for each slot, made when they are first needed. The row knows no type,
/// so it is compiled once.
pub(crate) struct Desks(PerSlot<OnceLock<AnyDesk>>);

type AnyDesk = Box<dyn Any + Send + Sync>;

impl Desks {
    pub(crate) fn new(slots: usize) -> Self {
        Self(PerSlot::new(slots))
    }

    pub(crate) fn grow_to(&self, slots: usize) {
        self.0.grow_to(slots);
    }

    /// The number of desks.
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

/// The first caller's desk is kept.
#[cold]
fn fill(cell: &OnceLock<AnyDesk>, desk: AnyDesk) -> &AnyDesk {
    cell.get_or_init(|| desk)
}
