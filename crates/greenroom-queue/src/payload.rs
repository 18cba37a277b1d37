//! What a queued message is made of.

/// What a queued message is made of. Only the types are named here, and the fields lie in the
/// entry: a struct of them inside it would be padded, and a short message would take eight bytes
/// more.
pub trait Payload {
    /// A message. A plain one has nothing else.
    type Message;
    /// What the others have besides.
    type Extra;
    /// Why the key of a message waits for an operator.
    type Failure;

    /// True if a message with this waits for another attempt.
    fn is_retry(extra: &Self::Extra) -> bool;

    /// True if a message with this waits for an operator, at the head of its key's line.
    fn has_failed_for_good(extra: &Self::Extra) -> bool;
}

/// Numbers are messages of which no attempt fails.
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
