//! What a limit tells of itself.

use std::time::Duration;

use super::settings::Mode;

/// The limit has changed, or would have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitChange {
    /// The limit before.
    pub from: usize,
    /// The limit now.
    pub to: usize,
    /// What decided.
    pub reason: LimitReason,
    /// Whether it is obeyed.
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
