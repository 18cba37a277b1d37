//! Workers that start, and callers that wait until so many of them run.
//!
//! ```text
//! worker:   its slot is live ─▶ one more is counted ─▶ all who wait are woken
//! waiter:   notes the count ─▶ counts live slots: n are missing ─▶ sleeps until n more have started
//! ```
//!
//! A waiter that misses `n` workers is woken by each start, and compares two numbers: it looks
//! at the slots again after `n` more starts, not after each. The count is noted before the
//! slots are looked at, so a start in between counts as one to come, and makes the next look too
//! early, never too late. A worker may die in the meantime, so the waiter looks again instead of
//! trusting the sum.

use greenroom_queue::sync::{AtomicU64, Mutex, Notify, Ordering};

/// The outcomes of starts so far.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// Workers that have started, each as often as it did. Written by the worker, after its slot
    /// is live; otherwise a waiter could sleep through the last start.
    count: AtomicU64,
    /// What the start that failed last has said.
    last_error: Mutex<Option<Box<str>>>,
    /// Told of each start, and of the pool's closing.
    changed: Notify,
}

impl Starts {
    /// A slot is live.
    pub(crate) fn one_more(&self) {
        // Pairs with the load in `reach`, behind the making of `changed`: the waiter sees this
        // start or is woken for it. Otherwise it sleeps through the last one.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// A worker could not be started.
    pub(crate) fn failed(&self, error: &str) {
        *self.last_error.lock() = Some(error.into());
    }

    /// The pool is closed: waiters are to look.
    pub(crate) fn closed(&self) {
        self.changed.notify_waiters();
    }

    /// How many have started so far.
    pub(crate) fn count(&self) -> u64 {
        // Pairs with the `fetch_add` in `one_more`. `reach` listens before it looks, and `ready`
        // looks here before it looks at the slots.
        self.count.load(Ordering::SeqCst)
    }

    /// What the start that failed last has said.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.lock().as_deref().map(str::to_owned)
    }

    /// Resolves once so many have started, or the pool `is_closed`.
    pub(crate) async fn reach(&self, count: u64, is_closed: impl Fn() -> bool) {
        loop {
            // Made before the look: it hears of what changes after it.
            let changed = self.changed.notified();
            if self.count() >= count || is_closed() {
                return;
            }
            changed.await;
        }
    }
}
