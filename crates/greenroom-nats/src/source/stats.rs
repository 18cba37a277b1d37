//! The counters of a source.

/// The counters of a [`NatsSource`](super::NatsSource) so far, over all its partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NatsSourceStats {
    /// Messages that were delivered again while they were in hand, and skipped.
    pub doubled: u64,
    /// Messages that were delivered again after they were done: skipped, and acknowledged again.
    pub skipped: u64,
    /// Results of an assignment that had ended, which changed nothing.
    pub fenced: u64,
    /// Messages that were given after later ones of their stream, because they could not be waited
    /// for.
    pub out_of_order: u64,
    /// Messages that are held back now, until older ones have come.
    pub held_back: u64,
    /// Consumers that another process reads now: this one waits until that one ends.
    pub waiting: u64,
    /// Consumers that are read without a lease, since the account cannot have one: a second process
    /// would read at the same time.
    pub without_lease: u64,
    /// How often the connection was replaced.
    pub reconnects: u64,
    /// How often messages were dropped because this process read too slowly. They are delivered
    /// again.
    pub slow: u64,
}
