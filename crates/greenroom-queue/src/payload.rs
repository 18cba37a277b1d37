//! The parts of a queued message.

/// The types of the parts of a queued message. The fields themselves are in the entry: a struct of
/// them inside it would be padded, and a short message would take eight bytes more.
pub trait Payload {
    /// The message itself. A plain one has nothing else.
    type Message;
    /// The extra parts of other messages.
    type Extra;
    /// The reason why the key of a message waits for an operator.
    type Failure;

    /// True if a message with these extra parts waits for a retry.
    fn is_retry(extra: &Self::Extra) -> bool;

    /// True if a message with these extra parts waits for an operator, at the head of its key's
    /// line.
    fn has_failed_for_good(extra: &Self::Extra) -> bool;
}

/// Plain numbers: no attempt of them fails.
#[cfg(test)]
impl Payload for u64 {
    type Message = Self;
    type Extra = ();
    type Failure = ();

    fn is_retry((): &()) -> bool {
        false
    }

    fn has_failed_for_good((): &()) -> bool {
        false
    }
}
