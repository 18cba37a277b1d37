//! The clock's task.

use std::{
    hash::Hash,
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

use crate::{Actor, pool::core::Core};

/// Starts the clock of a pool, unless that was done before (false). `spawn_task` makes what the
/// task holds of the pool: it counts as one of the pool's tasks.
pub(crate) fn start<A, K, Held>(
    core: &Arc<Core<A, K>>,
    spawn_task: impl FnOnce(&Arc<Core<A, K>>) -> Held,
) -> bool
where
    A: Actor,
    K: Hash + Eq + Send + Sync + 'static,
    Held: Deref<Target = Arc<Core<A, K>>> + Send + 'static,
{
    if !core.clock.begin() {
        return false;
    }
    core.env.spawn_boxed(run(spawn_task(core)));
    true
}

/// Runs until the pool has ended.
async fn run<A: Actor, K: Hash + Eq + Send + Sync + 'static>(
    core: impl Deref<Target = Arc<Core<A, K>>>,
) {
    while !core.lifecycle.ended.load(Ordering::Acquire) {
        while core.ring_next() {}
        core.notify_due_drops();
        let changed = core.clock.changed();
        let drops_at = core.telemetry.drops.next_at();
        match core.clock.next_at().into_iter().chain(drops_at).min() {
            Some(at) => {
                let _ = tokio::time::timeout_at(at, changed).await;
            }
            None => changed.await,
        }
    }
}
