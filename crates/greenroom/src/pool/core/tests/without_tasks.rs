//! A pool whose workers have no task any more, for tests that take the workers' steps themselves.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
};

use crate::pool::frame::supervised::active_slots;
use crate::{Actor, Context, PoolBuilder, pool::core::Core, step_aside};

/// Handles everything at once.
pub(super) struct Handles;

impl Actor for Handles {
    type Message = u64;
    type Reply = u64;
    type Error = ();

    async fn handle(&mut self, number: u64, _cx: &mut Context<Self>) -> Result<u64, ()> {
        Ok(number)
    }
}

pub(super) type Handlers = Arc<Core<Handles, Infallible>>;

/// Spawns the pool, and ends the tasks of its workers.
pub(super) async fn without_tasks(pool: PoolBuilder<Handles>) -> Handlers {
    let core = pool.spawn_core().await.unwrap();
    crate::pool::frame::task_guard::start_clock(&core.erased());
    core.frame.membership.abort(&active_slots(&*core));
    while core.frame.lifecycle.running.load(Ordering::SeqCst) > 1 {
        step_aside().await;
    }
    core
}
