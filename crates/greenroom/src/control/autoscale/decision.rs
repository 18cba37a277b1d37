//! The input and the output of a decision.

use std::time::Duration;

/// The state of a pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// The time since a moment that the caller chose once, by a monotonic clock.
    pub at: Duration,
    /// Messages accepted and not started.
    pub queued: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// The share of the time since the last sample that the workers were busy, 0 to 1. If unknown:
    /// the share of the workers that have a message in hand now.
    pub busy: f64,
    /// The number of workers that is set, started or not.
    pub workers: usize,
    /// Messages whose handling has ended since the last sample, whatever the outcome.
    pub handled: u64,
}

/// A change of size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// How many workers the pool had.
    pub from: usize,
    /// The new number; differs from `from`.
    pub to: usize,
    /// Why.
    pub reason: Reason,
}

/// Why the size of a pool changes, with the figures that decided.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Messages wait longer than allowed, or will at the measured throughput, and the workers are
    /// busy.
    Late {
        /// Messages that wait.
        queued: usize,
        /// How long the oldest has waited.
        oldest: Duration,
        /// How long the last one would wait at the present size.
        expected: Duration,
        /// Messages per second of a busy worker.
        per_worker: f64,
    },
    /// Like `Late`, but no message was finished yet, so that the throughput is unknown: the pool at
    /// most doubles.
    LateAndUnmeasured {
        /// Messages that wait.
        queued: usize,
        /// How long the oldest has waited.
        oldest: Duration,
    },
    /// Fewer workers would have been enough for the whole cool-down.
    Idle {
        /// The most workers that were busy at a time during it.
        peak_busy: f64,
        /// The cool-down.
        within: Duration,
    },
    /// The pool had fewer workers than the minimum.
    BelowMinimum,
    /// The pool had more workers than the maximum.
    AboveMaximum,
}
