//! Where a worker has the message in hand.

use super::{payload::Payload, stamp::Stamp};

/// The place of the message in hand. It is empty when one is put there.
pub trait Slot<T: Payload> {
    /// Puts a plain message in hand.
    fn put_plain(&mut self, message: T::Message, stamp: Stamp);

    /// As `put_plain`, for a message that may carry more.
    fn put(
        &mut self,
        message: T::Message,
        extra: Option<Box<T::Extra>>,
        urgent: bool,
        stamp: Stamp,
    );
}
