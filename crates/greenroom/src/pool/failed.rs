//! The failure of an attempt, kept with its message to explain why it waits.

use std::sync::Arc;

use greenroom_queue::discard::discard;
use greenroom_queue::lock::Mutex;
use tokio::time::Instant;

use crate::DeadLetterReason;

/// When an attempt failed: it distinguishes the failures of a key.
pub(crate) type FailedAt = Instant;

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failed<E> {
    /// How it failed.
    pub(crate) reason: DeadLetterReason,
    /// The handler's error, if there is one and no caller got it. Taken out while it is shown.
    error: Mutex<Option<E>>,
    /// The panic's message, if any.
    pub(crate) panic: Option<String>,
    pub(crate) at: FailedAt,
    /// The worker that had it in hand.
    pub(crate) worker: usize,
}

impl<E> Failed<E> {
    pub(crate) fn new(
        reason: DeadLetterReason,
        error: Option<E>,
        panic: Option<String>,
        worker: usize,
    ) -> Arc<Self> {
        Arc::new(Self { reason, error: Mutex::new(error), panic, at: Instant::now(), worker })
    }

    /// Shows the error, or the panic's message, under no lock.
    pub(crate) fn describe(&self, describe: impl FnOnce(&E) -> String) -> Option<String> {
        let shown = PutBack(&self.error, self.error.lock().take());
        shown.1.as_ref().map(describe).or_else(|| self.panic.clone())
    }

    pub(crate) fn take_error(&self) -> Option<E> {
        self.error.lock().take()
    }
}

/// An error that is being shown. It goes back to its place, even after a panic.
struct PutBack<'a, E>(&'a Mutex<Option<E>>, Option<E>);

impl<E> Drop for PutBack<'_, E> {
    fn drop(&mut self) {
        *self.0.lock() = self.1.take();
    }
}

impl<E> Drop for Failed<E> {
    fn drop(&mut self) {
        discard(self.error.get_mut().take());
    }
}
