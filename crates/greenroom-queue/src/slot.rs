//! The place where a worker has its message in hand.

use super::{payload::Payload, stamp::Stamp};

/// The place of the message in hand. It must be empty when a message is put there.
pub trait Slot<T: Payload> {
    /// Puts a message in hand.
    fn put(
        &mut self,
        message: T::Message,
        extra: Option<Box<T::Extra>>,
        urgent: bool,
        stamp: Stamp,
    );
}
