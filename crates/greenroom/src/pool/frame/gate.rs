//! The gate of a pool: whether it accepts messages. It shuts when the last worker goes, and opens
//! for the next one; a stop shuts it for good.

use std::sync::atomic::Ordering;

use greenroom_queue::{discard::wake_tasks, sync::MutexGuard};

use super::AnyCore;
use crate::pool::lifecycle::Acceptance;

/// Refuses every later message, under the lock of each shard.
pub(crate) fn close(pool: &dyn AnyCore) {
    let gate = pool.frame().lifecycle.gate.lock();
    // Pairs with the load in `notify_progress`, through the fence in `next_progress`: a worker that
    // rests sees that the pool closes, or the stop sees its counts. Otherwise the stop would sleep
    // until its deadline. Also pairs with the loads in `mailbox` and `hold`, under locks that
    // this close or the stop takes later: otherwise a message would be accepted and never given
    // back.
    pool.frame().lifecycle.closing.store(true, Ordering::SeqCst);
    shut_gate(pool, gate, Acceptance::Closed);
    pool.frame().membership.starts.closed();
}

/// Refuses messages if there is no worker, unless the pool should hold them.
pub(crate) fn close_if_deserted(pool: &dyn AnyCore) {
    if !pool.frame().config.size.holds_when_empty {
        desert(pool);
    }
}

/// One worker less can handle messages. Without any, the pool refuses messages, unless it should
/// hold them.
pub(crate) fn one_less(pool: &dyn AnyCore) -> bool {
    // Pairs with the load in `revive`: it comes before `desert` takes the gate, so the pool does
    // not stay open without a worker. Exactly one caller sees the last worker go.
    let last = pool.frame().membership.live.fetch_sub(1, Ordering::SeqCst) == 1;
    if last {
        close_if_deserted(pool);
    }
    last
}

/// Refuses messages until there is a worker again.
pub(crate) fn desert(pool: &dyn AnyCore) {
    let gate = pool.frame().lifecycle.gate.lock();
    // Pairs with each `fetch_add` to `live` before `revive`: the later of the two under the gate
    // sees the worker. Otherwise a pool that has a worker would stay closed.
    if *gate == Acceptance::Open && pool.frame().membership.live.load(Ordering::SeqCst) == 0 {
        shut_gate(pool, gate, Acceptance::Deserted);
    }
}

/// Refuses messages: permits and shards do so before the gate is free again. Those that wait for
/// room are notified under no lock.
fn shut_gate(pool: &dyn AnyCore, mut gate: MutexGuard<'_, Acceptance>, acceptance: Acceptance) {
    *gate = acceptance;
    let room = pool.permits().refuse_later();
    pool.set_shut(true);
    drop(gate);
    wake_tasks(|| room.close());
    pool.tell_shut(acceptance == Acceptance::Closed);
}

/// Accepts messages again, if there is a worker.
pub(crate) fn revive(pool: &dyn AnyCore) {
    let mut gate = pool.frame().lifecycle.gate.lock();
    // Pairs with the `fetch_sub` in `one_less` before `desert`: the later of the two under the gate
    // sees that no worker is left. Otherwise a pool without workers would accept messages.
    if *gate == Acceptance::Deserted && pool.frame().membership.live.load(Ordering::SeqCst) > 0 {
        *gate = Acceptance::Open;
        // Pairs with the load in `dead_letter_if_ruined`: it comes before the shards open, so
        // messages that are accepted from now on are not dead-lettered.
        pool.frame().lifecycle.ruined.store(false, Ordering::SeqCst);
        pool.permits().reopen();
        pool.set_shut(false);
    }
}

/// No worker is left and none was requested: queued messages will not be handled, unless they
/// should be held.
pub(crate) fn dead_letter_deserted(pool: &dyn AnyCore) {
    let config = &pool.frame().config;
    if config.size.holds_when_empty {
        return;
    }
    tracing::error!(
        pool = &*config.name,
        "no worker is left, so the pool refuses messages: bring one back with \
         `pool.admin().enable(slot)`, or add one with `pool.admin().add(1)`"
    );
    pool.dead_letter_queued();
    pool.frame().lifecycle.progress.notify_waiters();
}

/// While a message was between two places (with a worker that leaves, or with the clock), the last
/// worker may have gone, and the queued messages with it.
pub(crate) fn dead_letter_if_ruined(pool: &dyn AnyCore) {
    // Pairs with the store in `drain_if_deserted`, before the queues are drained: the drain finds
    // what the caller queued, or the caller dead-letters it here. Otherwise it would wait for a
    // worker that never comes.
    if pool.frame().lifecycle.ruined.load(Ordering::SeqCst) {
        pool.dead_letter_queued();
    }
}

/// A worker has left, and its messages are in the queue for others. None will come if it was the
/// last and `drops_out`.
pub(crate) fn settle_what_is_left(pool: &dyn AnyCore, drops_out: bool) {
    if pool.frame().lifecycle.check_running().is_err() {
        return give_back_if_ended(pool);
    }
    // Pairs with the `fetch_sub` in `one_less` of the workers that left before: otherwise queued
    // messages would never be dead-lettered.
    if drops_out && pool.frame().membership.live.load(Ordering::SeqCst) == 0 {
        dead_letter_deserted(pool);
    } else {
        dead_letter_if_ruined(pool);
    }
}

/// Like `dead_letter_if_ruined`, for a time in which all queued messages may also have been given
/// back.
pub(crate) fn settle_if_over(pool: &dyn AnyCore) {
    dead_letter_if_ruined(pool);
    give_back_if_ended(pool);
}

/// While a message was between two places, all queued messages may have been given back.
fn give_back_if_ended(pool: &dyn AnyCore) {
    // Pairs with the store in `end`, before the queues are drained: the drain finds what the caller
    // queued, or it is given back here. Otherwise its callers would wait forever.
    if pool.frame().lifecycle.ended.load(Ordering::SeqCst) {
        pool.give_back_queued();
    }
}
