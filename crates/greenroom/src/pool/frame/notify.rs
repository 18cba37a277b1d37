//! The reports of a pool about itself. Never under one of its locks, because loggers and wakers
//! run.

use std::{
    sync::atomic::{Ordering, fence},
    time::Duration,
};

use tokio::time::Instant;

use super::AnyCore;
use crate::{
    ExitReason, PoolEvent,
    pool::limits::LimitChange,
    pool_events::{LimitChangeReason, ResizeReason, drop_log::Dropped, full_log::Found},
};

/// Reports that the pool is to have another size.
pub(crate) fn notify_size(pool: &dyn AnyCore, from: usize, to: usize, reason: ResizeReason) {
    if from != to {
        pool.frame().notify(PoolEvent::Resized { from, to, reason });
    }
}

/// Reports that an adaptive limit has changed, or would have.
pub(crate) fn notify_limit(pool: &dyn AnyCore, change: LimitChange) {
    let LimitChange { from, to, reason, mode } = change;
    let reason = LimitChangeReason::Adapted { reason, mode };
    pool.frame().notify(PoolEvent::LimitChanged { from, to, reason });
}

/// Notes that a sender has found no room.
#[cold]
pub(crate) fn found_full(pool: &dyn AnyCore) {
    pool.frame().controllers.notify_saturated();
    if pool.frame().telemetry.full.is_full() {
        return;
    }
    let now = Instant::now();
    match pool.frame().telemetry.full.full(now) {
        Found::Known => return,
        Found::Begun => {}
        Found::ToBeTold => {
            pool.frame().notify(PoolEvent::MailboxFull);
            pool.frame().telemetry.full.told(now);
        }
    }
    // Workers may have emptied the mailbox since. Pairs with the fence of one that parks: it sees
    // that the mailbox is full, or its starts are seen here.
    fence(Ordering::SeqCst);
    notify_if_drained(pool);
}

/// Notes that a sender has found no room at one worker. If workers pull, that does not concern the
/// pool as long as it has room.
#[cold]
pub(crate) fn found_worker_full(pool: &dyn AnyCore) {
    let chosen = pool.frame().has_policy;
    if chosen || pool.permits().in_use(pool) >= pool.permits().capacity() {
        found_full(pool);
    }
}

/// For a worker that is about to continue.
#[cold]
pub(crate) fn look_now_and_then(pool: &dyn AnyCore) {
    if pool.frame().telemetry.full.may_look(Instant::now()) {
        notify_if_drained(pool);
    }
}

/// For a worker that has found nothing to do, after a fence.
pub(crate) fn notify_if_drained(pool: &dyn AnyCore) {
    let (depth, capacity) = (pool.permits().in_use(pool), pool.permits().capacity());
    if has_backlog(pool) {
        return;
    }
    if let Some(full_for) = pool.frame().telemetry.full.drained(depth, capacity, Instant::now()) {
        pool.frame().notify(PoolEvent::MailboxDrained { full_for });
    }
}

/// True while a worker that a policy chooses has hardly any room, whatever the others have.
fn has_backlog(pool: &dyn AnyCore) -> bool {
    let crowded = |slot| pool.mail(slot).is_some_and(|mail| mail.waiting > mail.capacity / 2);
    pool.frame().has_policy && (0..pool.frame().membership.slots.len()).any(crowded)
}

/// Notes that a message was dropped for lack of room.
pub(crate) fn has_dropped(pool: &dyn AnyCore) {
    match pool.frame().telemetry.drops.dropped(1, Instant::now()) {
        Dropped::Tell(messages) => pool.frame().notify(PoolEvent::DroppedByOverflow { messages }),
        Dropped::First => pool.frame().clock.notify(),
        Dropped::Counted => {}
    }
}

/// For the clock: reports drops that are not followed by another.
pub(crate) fn notify_due_drops(pool: &dyn AnyCore) {
    if let Some(messages) = pool.frame().telemetry.drops.due(Instant::now()) {
        pool.frame().notify(PoolEvent::DroppedByOverflow { messages });
    }
}

/// Reports the end once, with the stuck workers and how long each has been busy.
pub(crate) fn notify_end(pool: &dyn AnyCore, reason: &ExitReason, wedged: &[(usize, Duration)]) {
    // Pairs with itself, and with the store in `end_unheard`: only one of several stops reports the
    // end.
    if pool.frame().lifecycle.told_end.swap(true, Ordering::SeqCst) {
        return;
    }
    for &(slot, busy_for) in wedged {
        pool.frame().notify(PoolEvent::WorkerWedged { slot, busy_for });
    }
    if let Some(messages) = pool.frame().telemetry.drops.rest() {
        pool.frame().notify(PoolEvent::DroppedByOverflow { messages });
    }
    pool.frame().notify(PoolEvent::Stopped { reason: reason.clone() });
}
