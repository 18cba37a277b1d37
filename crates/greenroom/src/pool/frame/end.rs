//! The end of a pool: nothing more is started, and all that wait for it are notified.

use std::sync::atomic::Ordering;

use super::AnyCore;
use crate::pool::membership::slot_state::END;

/// Everything is done, or nothing more is to be started: workers end when they next check.
pub(crate) fn end(pool: &dyn AnyCore) {
    // Pairs with the load in `park` of a worker, which is in the idle list by then: it sees the
    // end, or `all` below finds it. Also pairs with the load in `over`, which is notified of the
    // end or sees it. Otherwise a worker would sleep forever, and the stop would wait for it.
    pool.frame().lifecycle.ended.store(true, Ordering::SeqCst);
    // A worker in the middle of a run checks only its own orders.
    pool.frame().membership.slots.iter().for_each(|slot_state| slot_state.order(END));
    pool.wake().all();
    pool.frame().clock.notify();
    pool.frame().lifecycle.over.notify_waiters();
    pool.frame().lifecycle.progress.notify_waiters();
}

/// Resolves once the pool has ended, or the worker of this slot is to leave.
pub(crate) async fn over(pool: &dyn AnyCore, slot: usize) {
    loop {
        let over = pool.frame().lifecycle.over.notified();
        // Pairs with the store in `end`, before its `notify_waiters`: `over` receives that from its
        // creation on. Otherwise a worker would wait out its backoff in a pool that has ended.
        if pool.frame().lifecycle.ended.load(Ordering::SeqCst)
            || pool.frame().membership.slots.at(slot).is_dismissed()
        {
            return;
        }
        over.await;
    }
}
