//! The drain token.

/// The right to take from the outbox.
pub struct Token<K> {
    /// The number of this token among those of its shard.
    pub epoch: u64,
    /// The holder.
    pub worker: usize,
    /// Incremented with each message taken.
    pub taken: u64,
    /// The key in hand and its hash; `None` for a message without a key.
    pub in_hand: Option<(u32, K)>,
    /// True while the holder compares keys outside the lock: its message has not been started, so
    /// the token stays.
    pub comparing: bool,
}
