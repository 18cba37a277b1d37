//! The tasks of a pool, counted, so that every stop can wait for its end.

use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

use super::{AnyCore, end::end, exit::end_of_life, gate::close, members::report_nothing_more};
use crate::pool::clock::task;

/// What a task of the pool holds of it for as long as it exists, started or not.
pub(crate) struct TaskGuard {
    pool: Arc<dyn AnyCore>,
    /// Its end is no sign that the runtime has shut down: the pool goes on without it.
    spared: bool,
}

impl TaskGuard {
    pub(crate) fn new(pool: &Arc<dyn AnyCore>) -> Self {
        pool.frame().lifecycle.running.fetch_add(1, Ordering::Relaxed);
        Self { pool: pool.clone(), spared: false }
    }

    /// The pool goes on without this task.
    pub(crate) fn spare(&mut self) {
        self.spared = true;
    }
}

impl Deref for TaskGuard {
    type Target = Arc<dyn AnyCore>;

    fn deref(&self) -> &Self::Target {
        &self.pool
    }
}

impl Drop for TaskGuard {
    /// If the last task ends although nobody has stopped the pool, its runtime has shut down. If
    /// the pool was stopped, the caller may have given up waiting. Callers elsewhere must not wait
    /// for answers that will never come.
    fn drop(&mut self) {
        let (pool, lifecycle) = (&self.pool, &self.pool.frame().lifecycle);
        // Pairs with the exchange below in other tasks that end: the last one sees what
        // they have left.
        let mut running = lifecycle.running.load(Ordering::SeqCst);
        loop {
            // The last one counts until it has given back what is queued: a stop that sees no task
            // left sees all of it. Pairs with the store in `end`: if the end is missed, a clock is
            // started that ends at once.
            let others_follow = running == 1
                && self.spared
                && !lifecycle.ended.load(Ordering::SeqCst)
                && start_clock(pool);
            if running == 1 && !others_follow {
                // Pairs with the store in `end`: if the end is missed, a pool is ended that has
                // been, which does nothing.
                if !lifecycle.ended.load(Ordering::SeqCst) {
                    close(&**pool);
                    end(&**pool);
                }
                end_of_life(pool, &[]);
                pool.give_back_queued();
            }
            if others_follow {
                // Pairs with the exchange below, as the first load.
                running = lifecycle.running.load(Ordering::SeqCst);
                continue;
            }
            let less = running - 1;
            // Pairs with the loads of `running` in `stop`, `all_gone` and `is_over`: what this task
            // gave back is seen with its going. Otherwise a stop reports less than was left over.
            match lifecycle.running.compare_exchange(
                running,
                less,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => break,
                Err(now) => running = now,
            }
        }
        report_nothing_more(&**pool);
        lifecycle.progress.notify_waiters();
    }
}

/// Starts the clock of a pool. False if that was done before.
pub(crate) fn start_clock(pool: &Arc<dyn AnyCore>) -> bool {
    task::start(pool, TaskGuard::new)
}
