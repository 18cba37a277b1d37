//! The figures of a pool in a period.

use std::{fmt, time::Duration};

use super::Inbox;

/// A pool in one period, and its settings at the end of the period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The end of the period, since a moment that the caller has chosen once, by a clock
    /// that never goes back.
    pub at: Duration,
    /// The length of the period.
    pub over: Duration,
    /// The bound on messages that are accepted and not started, as set.
    pub inbox: Inbox,
    /// The number of workers that is set.
    pub workers: usize,
    /// The most workers allowed.
    pub most_workers: usize,
    /// How often the inbox became full.
    pub inbox_full: u64,
    /// Messages accepted and not started, on average.
    pub queued: f64,
    /// The most of them that were observed at a time.
    pub peak: usize,
    /// The share of the room that was used, on average: 0 to 1, or more while a bound
    /// has just been shrunk.
    pub utilisation: f64,
    /// The share of the workers that were busy, on average: 0 to 1.
    pub busy: f64,
    /// The 99th percentile of the time from acceptance to the end of handling, over the messages
    /// whose handling ended in the period. If there was none: how long the oldest one has waited.
    /// `None` if nothing waited either.
    pub p99: Option<Duration>,
    /// Messages started, counted once per attempt.
    pub started: u64,
}

impl Figures {
    /// Figures of a pool with this bound and size that did nothing for five minutes.
    pub fn of(inbox: Inbox, workers: usize) -> Self {
        Self {
            at: Duration::ZERO,
            over: Duration::from_secs(300),
            inbox,
            workers,
            most_workers: usize::MAX,
            inbox_full: 0,
            queued: 0.0,
            peak: 0,
            utilisation: 0.0,
            busy: 0.0,
            p99: None,
            started: 0,
        }
    }

    /// How often per minute the inbox became full.
    pub fn full_per_minute(&self) -> f64 {
        let minutes = self.over.as_secs_f64() / 60.0;
        if minutes > 0.0 { self.inbox_full as f64 / minutes } else { 0.0 }
    }

    /// Messages accepted and not started, on average, per worker.
    pub fn depth(&self) -> f64 {
        self.queued / self.divisor()
    }

    /// The room for messages, per worker.
    pub fn room(&self) -> f64 {
        self.capacity() as f64 / self.divisor()
    }

    /// The room for messages, in total.
    pub(super) fn capacity(&self) -> usize {
        self.inbox.capacity(self.workers)
    }

    /// The most messages that waited at a time: the whole capacity, if it was full.
    pub(super) fn most_waiting(&self) -> f64 {
        let full = if self.inbox_full > 0 { self.capacity() } else { 0 };
        self.peak.max(full) as f64
    }

    /// False if nothing was sent, and nothing waited.
    pub(super) fn is_used(&self) -> bool {
        self.started > 0 || self.peak > 0 || self.queued > 0.0
    }

    fn divisor(&self) -> f64 {
        self.workers.max(1) as f64
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "full {:.1} times a minute, {:.2} used ({:.0} of {:.0} per worker on average)",
            self.full_per_minute(),
            self.utilisation,
            self.depth(),
            self.room(),
        )?;
        match self.p99 {
            Some(p99) => write!(f, ", p99 {:.1} ms", p99.as_secs_f64() * 1e3)?,
            None => write!(f, ", p99 unknown")?,
        }
        let seconds = self.over.as_secs_f64();
        write!(f, ", {} workers {:.2} busy, over {seconds:.0} s", self.workers, self.busy)
    }
}
