//! Where a worker has the message in hand.

use super::{payload::Payload, stamp::Stamp};

/// The place of the message in hand. It is empty when one is put there.
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
