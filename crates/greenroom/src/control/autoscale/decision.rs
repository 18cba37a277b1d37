//! The input and the output of a decision.

use std::time::Duration;

/// What a pool looks like at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// The time since a moment that the caller has chosen once, by a clock that never goes back.
    pub at: Duration,
    /// Messages accepted and not started.
    pub queued: usize,
    /// How long the oldest of them has waited.
    pub oldest: Duration,
    /// The share of the time since the last sample that the workers were busy, 0 to 1. If unknown:
    /// the share of the workers that have a message in hand now.
    pub busy: f64,
    /// Workers that the pool is set to have, started or not.
    pub workers: usize,
    /// Messages whose handling has ended since the last sample, whatever the outcome.
    pub handled: u64,
}

/// A change of size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// How many workers the pool had.
    pub from: usize,
    /// How many it is to have; another number than `from`.
    pub to: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a pool is to have another size, with the figures that decided.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Messages wait longer than they may, or will at the measured throughput, and
    /// the workers are busy.
    Late {
        /// Messages that wait.
        queued: usize,
        /// How long the oldest has waited.
        oldest: Duration,
        /// How long the last would wait at the size that the pool had.
        expected: Duration,
        /// Messages per second of a busy worker.
        per_worker: f64,
    },
    /// As `Late`, but nothing has been finished yet, so that the throughput is unknown: the
    /// pool at most doubles.
    LateAndUnmeasured {
        /// Messages that wait.
        queued: usize,
        /// How long the oldest has waited.
        oldest: Duration,
    },
    /// For the whole cool-down, fewer would have been enough.
    Idle {
        /// The most workers that were busy at a time, meanwhile.
        peak_busy: f64,
        /// The cool-down.
        within: Duration,
    },
    /// The pool had fewer workers than the minimum.
    BelowMinimum,
    /// The pool had more workers than the maximum.
    AboveMaximum,
}
