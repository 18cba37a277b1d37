//! Looking at a pool and its workers. No worker is asked; it waits only for locks that are held for
//! a few steps.

use std::hash::Hash;

use super::Core;
use crate::{
    Actor,
    inspect::{Inspection, Items, WorkerFigures, WorkerInspection},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn inspect(&self, wanted: &Items) -> Inspection {
        let mut workers = Vec::new();
        for slot in 0..self.membership.slots.len() {
            if let Some(worker) = self.snapshot_of(slot, wanted) {
                workers.push(worker);
            }
        }
        Inspection {
            pool: self.settings.config.name.clone(),
            stats: wanted.figures().then(|| self.figures()),
            workers,
        }
    }

    /// `None` if the slot is vacant.
    fn snapshot_of(&self, slot: usize, wanted: &Items) -> Option<WorkerInspection> {
        let slot_state = self.membership.slots.at(slot);
        let status = self.status_of(slot_state)?;
        let restarts = slot_state.details.lock().lives;
        let mailbox = self.mailbox_if_any(slot);
        Some(WorkerInspection {
            slot,
            name: self.worker_name(slot),
            figures: wanted.figures().then(|| WorkerFigures {
                status,
                restarts,
                in_hand: slot_state.is_busy(),
                mailbox: mailbox.as_ref().map_or(0, |mailbox| mailbox.waiting()),
                held: mailbox.as_ref().map_or(0, |mailbox| mailbox.held()),
            }),
            published: slot_state.published.snapshot(wanted),
        })
    }
}
