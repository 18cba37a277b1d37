//! The results of handlers for an event that a caller gave to a router.

use greenroom_config::plural;
use parking_lot::Mutex;

use crate::{dead_letter::Reason, event::Event, name::Name};

/// A handler that gave an event up.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "the handler {handler:?} failed after {} ({}): {error}",
    plural(*attempts as usize, "attempt"),
    reason.as_str()
)]
#[non_exhaustive]
pub struct HandlerFailure {
    /// Its name.
    pub handler: Name,
    /// The reason.
    pub reason: Reason,
    /// The last error, in words.
    pub error: String,
    /// Attempts made.
    pub attempts: u32,
}

impl HandlerFailure {
    pub(crate) fn new(handler: Name, reason: Reason, error: String, attempts: u32) -> Self {
        Self { handler, reason, error, attempts }
    }
}

/// The results of handlers for an event that a caller gave to a router.
#[derive(Debug, Default)]
pub(crate) struct Produced(Mutex<(Vec<Event>, Vec<HandlerFailure>)>);

impl Produced {
    pub(crate) fn add(&self, outputs: impl IntoIterator<Item = Event>) {
        self.0.lock().0.extend(outputs);
    }

    pub(crate) fn failed(&self, failure: HandlerFailure) {
        self.0.lock().1.push(failure);
    }

    pub(crate) fn take(&self) -> (Vec<Event>, Vec<HandlerFailure>) {
        std::mem::take(&mut *self.0.lock())
    }
}
