//! The time and the random number of an event.

use tokio::time::Instant;

/// The time of an event, and a random number between 0 and 1, for jitter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) chance: f64,
}
