//! A message that a sender lends to a queue.

use super::payload::Payload;

/// A message and its extra parts.
pub type Unpacked<T> = (<T as Payload>::Message, Option<Box<<T as Payload>::Extra>>);

/// A message that its sender offers to a queue. It stays with the sender until it is accepted. So
/// it moves only once, into its place in the queue, and the sender still has it if it is refused.
pub trait Offer<T: Payload> {
    /// The message, until it is taken out.
    fn message(&self) -> Option<&T::Message>;

    /// Takes out everything that is queued.
    fn unpack(&mut self) -> Option<Unpacked<T>>;

    /// True if the message comes before normal ones.
    fn is_urgent(&self) -> bool;
}

/// A plain message, which pays nothing for the parts that it does not have.
impl<T: Payload> Offer<T> for Option<T::Message> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn message(&self) -> Option<&T::Message> {
        self.as_ref()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn unpack(&mut self) -> Option<Unpacked<T>> {
        Some((self.take()?, None))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_urgent(&self) -> bool {
        false
    }
}
