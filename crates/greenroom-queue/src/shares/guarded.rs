//! Shares behind a lock, and the notification when one may start.

use std::{hash::Hash, time::Duration};

use super::ShareQueue;
use crate::{lock::Mutex, wake::Wake};

/// The shares of one pool behind a lock.
///
/// The pool's map of ready shards has a bit for them, which means that something may start. A party
/// that changes whether something may start sets the bit under this lock. A worker clears the bit
/// outside and checks under the lock afterwards, so it either sees the change, or the change sees
/// the bit cleared.
pub struct GuardedShares<S, T> {
    inner: Mutex<Inner<S, T>>,
}

struct Inner<S, T> {
    shares: ShareQueue<S, T>,
    /// The time at which the clock rings.
    alarm: Option<u64>,
}

impl<S: Hash + Eq + Clone, T> GuardedShares<S, T> {
    /// Shares in which nothing waits yet.
    pub fn new(shares: ShareQueue<S, T>) -> Self {
        Self { inner: Mutex::new(Inner { shares, alarm: None }) }
    }

    /// Works with the shares at the time that `clock` returns. The clock is read under the lock, so
    /// that time never goes back. Returns in how many nanoseconds the clock is to ring, unless it
    /// rings earlier anyway.
    pub fn work<R>(
        &self,
        wake: &Wake,
        clock: impl FnOnce() -> u64,
        work: impl FnOnce(&mut ShareQueue<S, T>, u64) -> R,
    ) -> (R, Option<Duration>) {
        let mut inner = self.inner.lock();
        let now = clock();
        let result = work(&mut inner.shares, now);
        match inner.shares.is_ready() {
            true => wake.mark_shares(),
            false => wake.clear_shares(),
        }
        let due = inner.shares.next_due();
        let earlier = due.filter(|due| inner.alarm.is_none_or(|alarm| *due < alarm));
        inner.alarm = earlier.or(inner.alarm);
        (result, earlier.map(|at| Duration::from_nanos(at.saturating_sub(now))))
    }

    /// The clock rings.
    pub fn ring(&self, wake: &Wake, clock: impl FnOnce() -> u64) -> Option<Duration> {
        self.inner.lock().alarm = None;
        self.work(wake, clock, ShareQueue::wake).1
    }
}
