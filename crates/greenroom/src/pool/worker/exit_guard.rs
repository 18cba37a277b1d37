//! Cleaning up when the task of a worker ends or is dropped.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::mpsc;

use crate::{
    ExitReason,
    pool::{
        frame::{
            AnyCore, Beginning,
            members::{drop_out, left},
            rest::rests,
            task_guard::TaskGuard,
        },
        membership::slot_state::{KILLED, REST, Status},
    },
};

/// How a worker's task ended.
pub(super) enum Gone {
    /// The slot is still its own: the pool has ended, or the worker has left for this reason.
    Over(ExitReason),
    /// The slot is no longer this worker's: another one may have been started there.
    GivenUp,
}

/// A worker that was told to leave is gone when its task ends or is dropped. If the task is dropped
/// because the worker was killed, another task continues.
pub(super) struct ExitGuard {
    pub(super) pool: TaskGuard,
    pub(super) slot: usize,
    /// Present once the task has ended.
    gone: Option<Gone>,
    /// The worker cannot be built again: if it is killed, it has left the pool.
    adopted: bool,
}

impl ExitGuard {
    pub(super) fn new(pool: &Arc<dyn AnyCore>, slot: usize, adopted: bool) -> Self {
        Self { pool: TaskGuard::new(pool), slot, gone: None, adopted }
    }

    /// Notes how the task has ended.
    pub(super) fn note(&mut self, gone: Gone) {
        self.gone = Some(gone);
    }
}

impl Drop for ExitGuard {
    fn drop(&mut self) {
        let (pool, slot) = (&self.pool, self.slot);
        let slot_state = pool.frame().membership.slots.at(slot);
        // Pairs with the store in `end`. If the end is missed, a task is started that finds it.
        let goes_on = !pool.frame().lifecycle.ended.load(Ordering::SeqCst);
        let killed = slot_state.has(KILLED) && goes_on;
        if killed && self.adopted && self.gone.is_none() {
            drop_out(pool, slot, &mpsc::unbounded_channel().0);
        }
        match &self.gone {
            Some(Gone::GivenUp) => self.pool.spare(),
            None if killed && !self.adopted && !slot_state.has(REST) => {
                // First: a kill from now on is meant for the task that is started here.
                slot_state.done(KILLED);
                Arc::clone(pool).start_worker(slot, Beginning::AfterKill);
            }
            gone if slot_state.status() == Status::Leaving => {
                let finished = match gone {
                    Some(Gone::Over(reason)) => Some(reason),
                    _ => None,
                };
                left(pool, slot, finished.unwrap_or(&ExitReason::Killed));
                if finished.is_some() || killed {
                    self.pool.spare();
                }
            }
            _ if slot_state.has(REST) && goes_on => {
                rests(pool, slot);
                self.pool.spare();
            }
            _ => {}
        }
    }
}
