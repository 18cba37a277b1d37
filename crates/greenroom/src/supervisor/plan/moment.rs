//! The time and the chance of what happens.

use tokio::time::Instant;

/// When something happened, and a random number between 0 and 1, for jitter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) chance: f64,
}
