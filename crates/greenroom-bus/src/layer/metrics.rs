//! Counts and times of attempts.

use std::{sync::Arc, time::Duration};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Layer;

use super::{Around, Request, Surrounded};
use crate::handler::{FailureKind, HandlerResult};

/// Times above this are counted as this: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

/// Counts attempts by result, and records how long they take. Clones share their counts: keep one
/// clone to read the figures of the one around a handler.
///
/// The result depends on its position: inside a time limit, an attempt that took too long was
/// cancelled; outside it, it timed out.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    counts: Arc<Mutex<AttemptCounts>>,
}

#[derive(Debug)]
struct AttemptCounts {
    seen: MetricsSnapshot,
    took: Histogram<u64>,
}

impl Default for AttemptCounts {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "two digits between 1 and an hour are valid bounds")]
        let took = Histogram::new_with_bounds(1, LONGEST_US, 2).expect("valid bounds");
        Self { seen: MetricsSnapshot::default(), took }
    }
}

/// The counts of [`Metrics`]. `begun` is the sum of all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// Attempts that came.
    pub begun: u64,
    /// Attempts under way.
    pub in_hand: u64,
    /// Attempts that succeeded.
    pub handled: u64,
    /// Attempts that failed of anything else: most may be tried again.
    pub failed: u64,
    /// Attempts that took too long.
    pub timed_out: u64,
    /// Attempts that found that no attempt will help.
    pub rejected: u64,
    /// Attempts whose worker process died.
    pub crashed: u64,
    /// Attempts that were not made: the event was given back unstarted.
    pub released: u64,
    /// Attempts that were dropped on their way: by a layer outside, a stop, or a panic.
    pub cancelled: u64,
    /// How long attempts took that came to an end: the median.
    pub took_p50: Duration,
    /// 99 of 100 took no longer.
    pub took_p99: Duration,
    /// The longest.
    pub took_most: Duration,
}

impl Metrics {
    /// All counts of one moment.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let counts = self.counts.lock();
        let quantile = |q| Duration::from_micros(counts.took.value_at_quantile(q));
        MetricsSnapshot {
            took_p50: quantile(0.5),
            took_p99: quantile(0.99),
            took_most: Duration::from_micros(counts.took.max()),
            ..counts.seen
        }
    }
}

impl<S> Layer<S> for Metrics {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(self.clone(), inner)
    }
}

/// An attempt under way, counted as cancelled if it is dropped.
#[derive(Debug)]
pub struct MetricsPass {
    counts: Arc<Mutex<AttemptCounts>>,
    began: Instant,
    ended: bool,
}

impl Around for Metrics {
    type Pass = MetricsPass;

    fn before(&self, _request: &mut Request) -> Result<MetricsPass, HandlerResult> {
        let mut counts = self.counts.lock();
        counts.seen.begun += 1;
        counts.seen.in_hand += 1;
        Ok(MetricsPass { counts: self.counts.clone(), began: Instant::now(), ended: false })
    }

    fn after(mut pass: MetricsPass, result: &mut HandlerResult) {
        let took = pass.began.elapsed().as_micros() as u64;
        let mut counts = pass.counts.lock();
        counts.took.saturating_record(took.clamp(1, LONGEST_US));
        let seen = &mut counts.seen;
        seen.in_hand -= 1;
        *match result.as_ref().map_err(|failure| failure.kind) {
            Ok(_) => &mut seen.handled,
            Err(FailureKind::Timeout) => &mut seen.timed_out,
            Err(FailureKind::Reject) => &mut seen.rejected,
            Err(FailureKind::Crash) => &mut seen.crashed,
            Err(FailureKind::Released) => &mut seen.released,
            Err(_) => &mut seen.failed,
        } += 1;
        drop(counts);
        pass.ended = true;
    }
}

impl Drop for MetricsPass {
    fn drop(&mut self) {
        if !self.ended {
            let mut counts = self.counts.lock();
            counts.seen.in_hand -= 1;
            counts.seen.cancelled += 1;
        }
    }
}
