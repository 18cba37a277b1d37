//! The reports of a limit.

use std::time::Duration;

use super::settings::Mode;

/// A change of the limit, or one that would have been made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitChange {
    /// The limit before.
    pub from: usize,
    /// The limit now.
    pub to: usize,
    /// The reason.
    pub reason: LimitReason,
    /// Whether it is enforced.
    pub mode: Mode,
}

/// Why a limit has changed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LimitReason {
    /// Handling was fast enough, and the limit was used up.
    Room,
    /// Handling took longer than allowed.
    Slow {
        /// The mean of the window.
        latency: Duration,
        /// At rest.
        baseline: Duration,
    },
    /// Messages were rejected or timed out.
    Failures {
        /// The share of the window's messages.
        share: f64,
    },
    /// Load is held back for a few windows, to measure the latency at rest; or no longer.
    Probe,
}
