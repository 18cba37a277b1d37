//! What the product's queues know of an attempt that has failed.

use std::sync::Arc;

use greenroom_queue::lock::Lock;

use crate::DeadLetterReason;

/// No clock: a decision of a model is about whatever parks the key.
pub(crate) type FailedAt = ();

pub(crate) struct Failed<E> {
    pub(crate) reason: DeadLetterReason,
    error: Lock<Option<E>>,
    pub(crate) panic: Option<String>,
    pub(crate) at: FailedAt,
}

impl<E> Failed<E> {
    pub(crate) fn new(reason: DeadLetterReason, error: Option<E>) -> Arc<Self> {
        Arc::new(Self { reason, error: Lock::new(error), panic: None, at: () })
    }

    pub(crate) fn take_error(&self) -> Option<E> {
        self.error.lock().take()
    }
}
