//! Looking at a pool and its workers. No worker is asked; it waits only for locks that are held for
//! a few steps.

use std::hash::Hash;

use super::Core;
use crate::{
    Actor,
    inspect::{Inspection, Items, WorkerFigures, WorkerInspection},
    pool::membership::slot_state::SlotState,
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn inspect(&self, wanted: &Items) -> Inspection {
        let slots = self.membership.slots.iter().enumerate();
        Inspection {
            pool: self.settings.config.name.clone(),
            stats: wanted.figures().then(|| self.figures()),
            workers: slots
                .filter_map(|(slot, slot_state)| self.snapshot_of(slot, slot_state, wanted))
                .collect(),
        }
    }

    /// `None` if the slot is vacant.
    fn snapshot_of(
        &self,
        slot: usize,
        slot_state: &SlotState,
        wanted: &Items,
    ) -> Option<WorkerInspection> {
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
