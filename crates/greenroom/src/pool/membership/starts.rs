//! Workers that start, and callers that wait until a number of them run.
//!
//! ```text
//! worker:   its slot is live ─▶ one more is counted ─▶ all waiters are woken
//! waiter:   notes the count ─▶ counts live slots: n are missing ─▶ sleeps until n more have started
//! ```
//!
//! A waiter that misses `n` workers is woken by each start, and compares two numbers: it checks the
//! slots again after `n` more starts, not after each. The count is read before the slots are
//! checked. So a start in between counts as a later one, and makes the next check too early, never
//! too late. A worker may die in the meantime, so the waiter checks again instead of trusting the
//! sum.

use greenroom_queue::sync::{AtomicU64, Mutex, Notify, Ordering};

/// The outcomes of starts so far.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// Starts of workers so far, repeated ones included. Written by the worker after its slot is
    /// live; otherwise a waiter could sleep through the last start.
    count: AtomicU64,
    /// The error of the start that failed last.
    last_error: Mutex<Option<Box<str>>>,
    /// Notified of each start, and when the pool closes.
    changed: Notify,
}

impl Starts {
    /// A slot is live.
    pub(crate) fn one_more(&self) {
        // Pairs with the load in `reach`, after the creation of `changed`: the waiter sees this
        // start or is woken for it. Otherwise it would sleep through the last one.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// A worker could not be started.
    pub(crate) fn failed(&self, error: &str) {
        *self.last_error.lock() = Some(error.into());
    }

    /// The pool is closed: waiters are to check.
    pub(crate) fn closed(&self) {
        self.changed.notify_waiters();
    }

    /// The number of starts so far.
    pub(crate) fn count(&self) -> u64 {
        // Pairs with the `fetch_add` in `one_more`. `reach` listens before it checks, and `ready`
        // reads this before it checks the slots.
        self.count.load(Ordering::SeqCst)
    }

    /// The error of the start that failed last.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().as_deref().map(str::to_owned)
    }

    /// Resolves once this many have started, or the pool `is_closed`.
    pub(crate) async fn reach(&self, count: u64, is_closed: impl Fn() -> bool) {
        loop {
            // Created before the check, so that it receives every later change.
            let changed = self.changed.notified();
            if self.count() >= count || is_closed() {
                return;
            }
            changed.await;
        }
    }
}
