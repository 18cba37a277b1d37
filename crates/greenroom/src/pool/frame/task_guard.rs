//! Counted tasks of a pool, so that every stop can wait for their end.

use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

use super::{AnyCore, end::end, exit::end_of_life, gate::close, members::report_nothing_more};
use crate::pool::clock::task;

/// Held by each task of the pool for as long as the task exists, started or not.
pub(crate) struct TaskGuard {
    pool: Arc<dyn AnyCore>,
    /// The task's end is no sign of a runtime shutdown: the pool continues without it.
    spared: bool,
}

impl TaskGuard {
    pub(crate) fn new(pool: &Arc<dyn AnyCore>) -> Self {
        pool.frame().lifecycle.running.fetch_add(1, Ordering::Relaxed);
        Self { pool: pool.clone(), spared: false }
    }

    /// The pool continues without this task.
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
    /// If the last task ends although the pool was not stopped, its runtime has shut down. If the
    /// pool was stopped, the caller may have given up waiting. Callers elsewhere must not wait for
    /// answers that will never come.
    fn drop(&mut self) {
        let (pool, lifecycle) = (&self.pool, &self.pool.frame().lifecycle);
        // Pairs with the exchange below in other tasks that end: the last one sees what they have
        // left.
        let mut running = lifecycle.running.load(Ordering::SeqCst);
        loop {
            // The last task counts until it has given back the queued messages: a stop that sees no
            // task left sees all of them. Pairs with the store in `end`: if the end is missed, a
            // clock is started that ends at once.
            let others_follow = running == 1
                && self.spared
                && !lifecycle.ended.load(Ordering::SeqCst)
                && start_clock(pool);
            if running == 1 && !others_follow {
                // Pairs with the store in `end`: if the end is missed, the pool is ended a second
                // time, which does nothing.
                if !lifecycle.ended.load(Ordering::SeqCst) {
                    close(&**pool);
                    end(&**pool);
                }
                end_of_life(pool, &[]);
                pool.give_back_queued();
            }
            if others_follow {
                // Pairs with the exchange below, like the first load.
                running = lifecycle.running.load(Ordering::SeqCst);
                continue;
            }
            let less = running - 1;
            // Pairs with the loads of `running` in `stop`, `all_gone` and `is_over`: a stop that
            // sees this task gone sees the messages that it gave back. Otherwise the stop would
            // report too few left over.
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

/// Starts the clock of a pool. Returns false if it was started before.
pub(crate) fn start_clock(pool: &Arc<dyn AnyCore>) -> bool {
    task::start(pool, TaskGuard::new)
}
