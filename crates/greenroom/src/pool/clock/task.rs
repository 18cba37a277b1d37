//! The clock's task.

use std::{
    ops::Deref,
    sync::{Arc, atomic::Ordering},
};

use tokio::time::Instant;

use crate::pool::frame::{AnyCore, notify::notify_due_drops};

/// Starts the clock of a pool. Returns false if it was started before. `spawn_task` makes the guard
/// that the task holds: it counts as one of the pool's tasks.
pub(crate) fn start<Held>(
    pool: &Arc<dyn AnyCore>,
    spawn_task: impl FnOnce(&Arc<dyn AnyCore>) -> Held,
) -> bool
where
    Held: Deref<Target = Arc<dyn AnyCore>> + Send + 'static,
{
    if !pool.frame().clock.begin() {
        return false;
    }
    pool.frame().env.spawn(Box::pin(run(spawn_task(pool))));
    true
}

/// Runs until the pool has ended.
async fn run(pool: impl Deref<Target = Arc<dyn AnyCore>>) {
    let clock = &pool.frame().clock;
    while !pool.frame().lifecycle.ended.load(Ordering::Acquire) {
        while let Some(alarm) = clock.pop_due(Instant::now()) {
            pool.ring(alarm);
        }
        notify_due_drops(&**pool);
        let changed = clock.changed();
        let drops_at = pool.frame().telemetry.drops.next_at();
        match clock.next_at().into_iter().chain(drops_at).min() {
            Some(at) => {
                let _ = tokio::time::timeout_at(at, changed).await;
            }
            None => changed.await,
        }
    }
}
