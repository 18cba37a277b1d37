//! The tasks of a pool, counted, so that everybody who stops it can wait for its end.

use std::{
    hash::Hash,
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

use super::core::Core;
use crate::Actor;

/// What a task of the pool holds of it for as long as it exists, started or not.
pub(crate) struct Employed<A: Actor, K: Hash + Eq + Send + Sync + 'static>(Arc<Core<A, K>>);

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Employed<A, K> {
    pub(crate) fn new(core: &Arc<Core<A, K>>) -> Self {
        core.running.fetch_add(1, Ordering::Relaxed);
        Self(core.clone())
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Deref for Employed<A, K> {
    type Target = Arc<Core<A, K>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Employed<A, K> {
    /// When the last task goes although nobody has stopped the pool, its runtime has shut down. Callers elsewhere must
    /// not wait for answers that nobody will give.
    fn drop(&mut self) {
        let core = &self.0;
        let mut running = core.running.load(Ordering::SeqCst);
        loop {
            // The last one counts until it has given back what is queued: who sees no task left sees all of it.
            if running == 1 && !core.ended.load(Ordering::SeqCst) {
                core.close();
                core.end();
                core.end_of_life(&[]);
                core.give_back_queued();
            }
            let less = running - 1;
            match core.running.compare_exchange(running, less, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => running = now,
            }
        }
        core.progress.notify_waiters();
    }
}
