//! The shares of a pool, and the workers that are woken because of them.

use std::{sync::Arc, time::Duration};

use greenroom_queue::shares::ShareQueue;

use super::{AnyCore, Frame};
use crate::pool::shares::{Share, ShareTicket};

/// Works with the shares of a pool that has shares. For a worker that looks for messages itself
/// next.
pub(crate) fn work<R>(
    pool: &dyn AnyCore,
    work: impl FnOnce(&mut ShareQueue<Share, ShareTicket>, u64) -> R,
) -> Option<R> {
    let (result, alarm) = pool.frame().shares.as_deref()?.work(pool.wake(), work);
    if let Some(after) = alarm {
        pool.frame().clock.wake_shares(after);
    }
    Some(result)
}

/// Like `work`, for all other callers: wakes a worker for messages that may start.
pub(crate) fn change<R>(
    pool: &dyn AnyCore,
    change: impl FnOnce(&mut ShareQueue<Share, ShareTicket>, u64) -> R,
) -> Option<R> {
    let (result, is_even) = work(pool, |shares, now| (change(shares, now), shares.is_even()))?;
    if !is_even {
        start_in_order(pool.frame());
    }
    call_worker(pool);
    Some(result)
}

/// Nothing of this share starts for this long. Returns false in a pool without shares.
pub(crate) fn hold(pool: &dyn AnyCore, share: &Share, during: Duration) -> bool {
    let during = u64::try_from(during.as_nanos()).unwrap_or(u64::MAX);
    change(pool, |shares, now| shares.hold(share, now.saturating_add(during), now)).is_some()
}

/// The worker in this slot has not started the message that it took.
pub(crate) fn not_started(pool: &dyn AnyCore, slot: usize) {
    work(pool, |shares, now| shares.not_started(slot, now));
}

/// From now on messages are started in the order of their shares.
pub(crate) fn start_in_order(frame: &Frame) {
    if let Some(gate) = frame.limits.as_deref().filter(|gate| !gate.is_shared()) {
        gate.set_shared(true);
    }
}

/// The time that the clock was set for has come.
pub(crate) fn ring(pool: &dyn AnyCore) {
    let Some(desk) = pool.frame().shares.as_deref() else { return };
    if let Some(after) = desk.ring(pool.wake()) {
        pool.frame().clock.wake_shares(after);
    }
    call_worker(pool);
}

fn call_worker(pool: &dyn AnyCore) {
    if pool.wake().any_ready() {
        pool.wake().one(&pool.frame().clock.watchdog);
    }
}

/// The attempt that a worker is about to make, or is making. It ends when this is dropped.
pub(crate) struct ShareHand {
    pool: Arc<dyn AnyCore>,
    slot: usize,
    over: bool,
}

impl ShareHand {
    /// For a pool with shares.
    pub(crate) fn new(pool: Arc<dyn AnyCore>, slot: usize) -> Self {
        Self { pool, slot, over: false }
    }

    /// The message that was taken was not started.
    pub(crate) fn not_started(&self) {
        not_started(&*self.pool, self.slot);
    }

    /// The attempt has ended, and its worker continues.
    pub(crate) fn ended(mut self) {
        self.over = true;
        work(&*self.pool, |shares, now| shares.end(self.slot, now));
    }
}

impl Drop for ShareHand {
    /// Nothing was started, or the worker has died.
    fn drop(&mut self) {
        if !self.over {
            change(&*self.pool, |shares, now| shares.end(self.slot, now));
        }
    }
}
