//! Inspecting a pool and its workers. No worker is asked; an inspection waits only for locks that
//! are held for a few steps.

use super::{
    AnyCore,
    figures::{figures, status_of},
};
use crate::inspect::{Inspection, Items, WorkerFigures, WorkerInspection};

pub(crate) fn inspect(pool: &dyn AnyCore, wanted: &Items) -> Inspection {
    let mut workers = Vec::new();
    for slot in 0..pool.frame().membership.slots.len() {
        if let Some(worker) = snapshot_of(pool, slot, wanted) {
            workers.push(worker);
        }
    }
    Inspection {
        pool: pool.frame().config.name.clone(),
        stats: wanted.figures().then(|| figures(pool)),
        workers,
    }
}

/// `None` if the slot is vacant.
fn snapshot_of(pool: &dyn AnyCore, slot: usize, wanted: &Items) -> Option<WorkerInspection> {
    let slot_state = pool.frame().membership.slots.at(slot);
    let status = status_of(pool, slot_state)?;
    let restarts = slot_state.details.lock().lives;
    let mailbox = pool.mail(slot);
    Some(WorkerInspection {
        slot,
        name: pool.frame().worker_name(slot),
        figures: wanted.figures().then(|| WorkerFigures {
            status,
            restarts,
            in_hand: slot_state.is_busy(),
            mailbox: mailbox.as_ref().map_or(0, |mailbox| mailbox.waiting),
            held: mailbox.as_ref().map_or(0, |mailbox| mailbox.held),
        }),
        published: slot_state.published.snapshot(wanted),
    })
}
