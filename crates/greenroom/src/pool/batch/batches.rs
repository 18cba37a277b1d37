//! The size of batches.

use std::time::Duration;

/// The size of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batches {
    /// The most messages.
    pub(crate) most: usize,
    /// How long a smaller batch waits for more messages of its key.
    pub(crate) within: Duration,
}

impl Batches {
    /// Up to this many messages, of those that wait when the first is taken. At least 1.
    pub const fn of(most: usize) -> Self {
        Self { most: if most == 0 { 1 } else { most }, within: Duration::ZERO }
    }

    /// A batch that is not full waits this long for more messages of its key. That delays the batch
    /// and occupies its worker; other workers continue with other keys. Pools without keys, and
    /// messages without a key, do not wait.
    pub const fn within(self, wait: Duration) -> Self {
        Self { within: wait, ..self }
    }
}
