//! The drain token.

/// The right to take from the outbox.
pub struct Token<K> {
    /// Which of the tokens of this shard it is.
    pub epoch: u64,
    /// The holder.
    pub worker: usize,
    /// Rises with each message taken.
    pub taken: u64,
    /// The key in hand and its hash; `None` for a message without a key.
    pub in_hand: Option<(u32, K)>,
    /// True while the holder compares keys outside the lock: its message is not started, so the
    /// token stays.
    pub comparing: bool,
}
