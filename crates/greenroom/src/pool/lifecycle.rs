//! Whether a pool accepts messages, whether it has ended, and the waiters for both.

use std::sync::{Arc, OnceLock};

use greenroom_queue::sync::{AtomicBool, AtomicUsize, Mutex, Notify, Ordering, fence};

use super::admin::error::AdminError;
use crate::{AnyAddress, ExitReason, life::Life};

/// Whether a pool accepts messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Acceptance {
    /// It does. Left when the last worker goes, or by a stop.
    Open,
    /// It has no worker. Left when one joins, or by a stop.
    Deserted,
    /// It never will again.
    Closed,
}

/// Whether a pool accepts messages, whether it has ended, and the waiters for both.
pub(crate) struct Lifecycle {
    /// From its spawn to its end, with the parties that are notified of the end.
    pub(crate) life: Arc<Life<AnyAddress>>,
    /// The reason for its end, if it is not simply stopped. The first reason counts.
    pub(crate) cause: OnceLock<ExitReason>,
    /// Whether messages are accepted; held while that changes.
    pub(crate) gate: Mutex<Acceptance>,
    /// The last slot was disabled: queued messages become dead letters. Written under `gate`, and
    /// never true while that is open: a pool with a worker does not dead-letter the messages that
    /// it accepts.
    pub(crate) ruined: AtomicBool,
    /// Whether the pool has stopped accepting.
    pub(crate) closing: AtomicBool,
    /// Whether all is done: idle workers end.
    pub(crate) ended: AtomicBool,
    /// Whether the end was reported.
    pub(crate) told_end: AtomicBool,
    /// Notifies stops that a worker found nothing to do while the pool was closing, or that a task
    /// has ended.
    pub(crate) progress: Notify,
    /// Notified once, when `ended` is set, for workers between restarts.
    pub(crate) over: Notify,
    /// Tasks of the pool that have not ended: workers, and the clock.
    pub(crate) running: AtomicUsize,
    /// Addresses in existence; the last one dropped drains and stops the pool.
    pub(crate) handles: AtomicUsize,
}

impl Lifecycle {
    /// For a pool that is about to start.
    pub(super) fn new() -> Self {
        Self {
            life: Arc::default(),
            cause: OnceLock::new(),
            gate: Mutex::new(Acceptance::Open),
            ruined: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            told_end: AtomicBool::new(false),
            progress: Notify::new(),
            over: Notify::new(),
            running: AtomicUsize::new(0),
            handles: AtomicUsize::new(0),
        }
    }

    /// Resolves once the pool has ended.
    pub(crate) async fn ends(&self) {
        loop {
            let over = self.over.notified();
            // Pairs with the store of `end`, which notifies `over` next: either this load
            // sees the end, or `over` resolves. Loaded before `notified`, an end in between would
            // be missed.
            if self.ended.load(Ordering::SeqCst) {
                return;
            }
            over.await;
        }
    }

    /// Resolves when a stop should check again whether all is done.
    pub(crate) fn next_progress(&self) -> impl Future<Output = ()> {
        let progress = self.progress.notified();
        // Pairs with the fence of `Wake::pass_on`, by a worker that parks and then calls
        // `notify_progress`: the stop sees its counts, or it sees `closing` and notifies. Without
        // the fence both could miss the other, and a drained pool would wait.
        fence(Ordering::SeqCst);
        progress
    }

    /// Notifies stops that a message may have been the last one.
    pub(crate) fn notify_progress(&self) {
        // Pairs with the store in `close`, through the fence in `next_progress`: the caller has
        // counted its message before, and is behind a fence. It sees that the pool closes, or the
        // stop sees the count. Otherwise the stop would sleep until its deadline.
        if self.closing.load(Ordering::SeqCst) {
            self.progress.notify_waiters();
        }
    }

    pub(crate) fn check_running(&self) -> Result<(), AdminError> {
        // Pairs with the store in `close`. If it is missed, a worker is added that finds the end.
        match self.closing.load(Ordering::SeqCst) {
            true => Err(AdminError::NotRunning),
            false => Ok(()),
        }
    }

    /// Sets the reason for the end, unless there is one already.
    pub(crate) fn ends_because(&self, reason: ExitReason) {
        let _ = self.cause.set(reason);
    }

    /// The reason for a worker that ends with its pool, or leaves it.
    pub(crate) fn reason_to_leave(&self) -> ExitReason {
        // Pairs with the store in `end`, before which the cause was set: otherwise an ended pool's
        // workers would say that they ended normally.
        match self.ended.load(Ordering::SeqCst) {
            true => self.cause.get().cloned().unwrap_or(ExitReason::Shutdown),
            false => ExitReason::Normal,
        }
    }
}
