//! Looking at a pool and its workers. No worker is asked; it waits only for locks that are held for
//! a few steps.

use std::hash::Hash;

use super::Core;
use crate::{
    Actor,
    inspect::{Inspection, Items, WorkerFigures, WorkerInspection},
    pool::seat::Seat,
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn inspect(&self, wanted: &Items) -> Inspection {
        let seats = self.membership.seats.iter().enumerate();
        Inspection {
            pool: self.settings.config.name.clone(),
            stats: wanted.figures().then(|| self.figures()),
            workers: seats.filter_map(|(slot, seat)| self.look_at(slot, seat, wanted)).collect(),
        }
    }

    /// `None` if the slot is vacant.
    fn look_at(&self, slot: usize, seat: &Seat, wanted: &Items) -> Option<WorkerInspection> {
        let (status, restarts) = {
            let place = seat.place.lock();
            (place.status.told()?, place.lives)
        };
        let mailbox = self.mailbox_if_any(slot);
        Some(WorkerInspection {
            slot,
            name: self.worker_name(slot),
            figures: wanted.figures().then(|| WorkerFigures {
                status,
                restarts,
                in_hand: seat.is_busy(),
                mailbox: mailbox.as_ref().map_or(0, |mailbox| mailbox.waiting()),
                held: mailbox.as_ref().map_or(0, |mailbox| mailbox.held()),
            }),
            published: seat.published.snapshot(wanted),
        })
    }
}
