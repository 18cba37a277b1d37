//! Batches that are full by their size (K12).

use std::any::Any;

use greenroom_queue::discard::{discard, panic_of};

use crate::pool::{bytes::SizeOf, panic_message::panic_message};

/// The number of bytes at which a batch is full.
pub(crate) struct BatchBytes<M> {
    /// At least 1.
    most: usize,
    size_of: SizeOf<M>,
}

impl<M> BatchBytes<M> {
    pub(crate) fn new(most: usize, size_of: SizeOf<M>) -> Self {
        Self { most, size_of }
    }

    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        bytes >= self.most
    }

    /// The size of a message. Runs user code, in the worker, with messages in hand: if it panics,
    /// the batch ends with that message, and the message is handled.
    pub(crate) fn of(&self, message: Option<&M>) -> usize {
        let Some(message) = message else { return 0 };
        let mut bytes = usize::MAX;
        if let Some(panic) = panic_of(&mut || bytes = (self.size_of)(message)) {
            size_panicked(panic);
        }
        bytes
    }
}

fn size_panicked(panic: Box<dyn Any + Send>) {
    let message = panic_message(&*panic);
    discard(panic);
    tracing::error!(panic = message, "the function for the size of a message panicked");
}
