//! The live workers of a pool, for code that sends to all of them at once.

use crate::{Address, pool::Worker};

/// The workers that handle messages now, each once, in the order of their slots.
pub(crate) fn live_workers<M, R, E>(pool: &Address<M, R, E>) -> Vec<Worker<M, R, E>> {
    let mut workers = Vec::new();
    pool.vtable.clone().show_live(&mut |slot, vtable| workers.push(Worker::new(slot, vtable)));
    workers
}
