//! Callers that wait until a number of workers run.

use std::{sync::atomic::Ordering, time::Duration};

use super::AnyCore;
use crate::pool::{
    clock::timed::{self, later},
    membership::{not_ready::NotReady, slot_state::Status},
};

/// Resolves once this many workers run.
pub(crate) async fn ready(
    pool: &dyn AnyCore,
    wanted: usize,
    within: Duration,
) -> Result<(), NotReady> {
    let deadline = later(within);
    loop {
        let before = pool.frame().membership.starts.count();
        let missing = wanted.saturating_sub(live_slots(pool)) as u64;
        if missing == 0 || pool.frame().lifecycle.check_running().is_err() {
            return is_ready(pool, wanted);
        }
        let enough = before.saturating_add(missing);
        let has_stopped = || pool.frame().lifecycle.check_running().is_err();
        let started = pool.frame().membership.starts.reach(enough, has_stopped);
        if timed::until(&pool.frame().env.runtime, deadline, started).await.is_err() {
            return is_ready(pool, wanted);
        }
    }
}

/// Slots keep their state after the pool has ended, but their workers are gone.
fn live_slots(pool: &dyn AnyCore) -> usize {
    // Pairs with the store in `end`: otherwise slots of a pool that has ended count as workers.
    if pool.frame().lifecycle.ended.load(Ordering::SeqCst) {
        return 0;
    }
    let slots = pool.frame().membership.slots.iter();
    slots.filter(|slot_state| slot_state.status() == Status::Live).count()
}

/// Checks once more: at the deadline, the last worker may have just started.
fn is_ready(pool: &dyn AnyCore, wanted: usize) -> Result<(), NotReady> {
    let (live, stopped) = (live_slots(pool), pool.frame().lifecycle.check_running().is_err());
    if live >= wanted && !stopped {
        return Ok(());
    }
    let last_error = pool.frame().membership.starts.last_error();
    Err(NotReady { wanted, live, last_error, stopped })
}
