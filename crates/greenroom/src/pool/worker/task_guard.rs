//! The tasks of a pool, counted, so that every stop can wait for its end.

use std::{
    hash::Hash,
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

use crate::Actor;
use crate::pool::{clock::task, core::Core};

/// What a task of the pool holds of it for as long as it exists, started or not.
pub(crate) struct TaskGuard<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    core: Arc<Core<A, K>>,
    /// Its end is no sign that the runtime has shut down: the pool goes on without it.
    spared: bool,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> TaskGuard<A, K> {
    pub(crate) fn new(core: &Arc<Core<A, K>>) -> Self {
        core.lifecycle.running.fetch_add(1, Ordering::Relaxed);
        Self { core: core.clone(), spared: false }
    }

    /// The pool goes on without this task.
    pub(crate) fn spare(&mut self) {
        self.spared = true;
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Deref for TaskGuard<A, K> {
    type Target = Arc<Core<A, K>>;

    fn deref(&self) -> &Self::Target {
        &self.core
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for TaskGuard<A, K> {
    /// If the last task ends although nobody has stopped the pool, its runtime has shut down. If
    /// the pool was stopped, the caller may have given up waiting. Callers elsewhere must not wait
    /// for answers that will never come.
    fn drop(&mut self) {
        let core = &self.core;
        // Pairs with the exchange below in other tasks that end: the last one sees what
        // they have left.
        let mut running = core.lifecycle.running.load(Ordering::SeqCst);
        loop {
            // The last one counts until it has given back what is queued: a stop that sees no task
            // left sees all of it. Pairs with the store in `end`: if the end is missed, a clock is
            // started that ends at once.
            let others_follow = running == 1
                && self.spared
                && !core.lifecycle.ended.load(Ordering::SeqCst)
                && start_clock(core);
            if running == 1 && !others_follow {
                // Pairs with the store in `end`: if the end is missed, a pool is ended that has
                // been, which does nothing.
                if !core.lifecycle.ended.load(Ordering::SeqCst) {
                    core.close();
                    core.end();
                }
                core.end_of_life(&[]);
                core.give_back_queued();
            }
            if others_follow {
                // Pairs with the exchange below, as the first load.
                running = core.lifecycle.running.load(Ordering::SeqCst);
                continue;
            }
            let less = running - 1;
            // Pairs with the loads of `running` in `stop`, `all_gone` and `is_over`: what this task
            // gave back is seen with its going. Otherwise a stop reports less than was left over.
            match core.lifecycle.running.compare_exchange(
                running,
                less,
                Ordering::SeqCst,
                Ordering::SeqCst,
            ) {
                Ok(_) => break,
                Err(now) => running = now,
            }
        }
        core.report_nothing_more();
        core.lifecycle.progress.notify_waiters();
    }
}

/// Starts the clock of a pool. False if that was done before.
pub(crate) fn start_clock<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: &Arc<Core<A, K>>,
) -> bool {
    task::start(core, TaskGuard::new)
}
