//! A limit on messages in hand at once, learned at run time.
//!
//! ```text
//!                    ┌─ latency  ─▶ gradient ─▶ limit ─┐
//! ends ─▶ window ────┤                                 ├─ the smaller ─▶ limit
//!                    └─ failures ─▶ AIMD ─────▶ limit ─┘
//! ```
//!
//! Latency alone is not enough: a service that refuses in a millisecond looks fast, and a limit
//! that follows only latency would grow into the outage. So for refused and timed-out messages,
//! their number counts rather than their times, and the smaller of two limits holds. Each grows
//! only in windows in which it was itself used up: the limit by latency is not forgotten while
//! failures keep the other one small, and neither grows without demand for more.
//!
//! Ask for a start only if a message could start: a message that waits for its key is no demand. A
//! pool whose demand is bound by its keys never uses the limit up, and does not move it.

use std::time::Duration;

use super::{
    baseline::Baseline,
    failures, gradient,
    probe::Probe,
    report::{LimitChange, LimitReason},
    settings::{Adaptive, Mode},
    window::{LEAST_SAMPLES, Outcome, Summary, Window},
};
use crate::SpawnError;

/// A limit on messages in flight.
///
/// ```
/// use std::time::Duration;
/// use greenroom::limits::{Adaptive, AdaptiveLimit, Outcome};
///
/// let settings = Adaptive { initial: 10, ..Adaptive::up_to(100).enforced() };
/// let mut limit = AdaptiveLimit::new(settings)?;
/// assert!((0..10).all(|_| limit.try_start()));
/// assert!(!limit.try_start());
///
/// // All of them, and as many more, are turned away, within a second.
/// for millis in 0..20 {
///     limit.finish(Duration::from_millis(millis * 50), Duration::from_millis(1), Outcome::Rejected);
///     limit.try_start();
/// }
/// assert!(limit.limit() < 10);
/// # Ok::<(), greenroom::SpawnError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AdaptiveLimit {
    pub(super) settings: Adaptive,
    /// The limit by latency. Moves only in windows in which it was nearly used up.
    by_latency: f64,
    /// The limit by failures; the maximum while there are none.
    by_failures: f64,
    pub(super) baseline: Baseline,
    /// Present while load is held back, to measure the latency at rest.
    probe: Option<Probe>,
    window: Window,
    /// The least length of the next window.
    length: Duration,
    pub(super) in_flight: usize,
    /// Starts that were refused, or would have been if the limit were enforced.
    pub(super) held_back: u64,
}

impl AdaptiveLimit {
    /// A limit without observations.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(settings: Adaptive) -> Result<Self, SpawnError> {
        let settings = settings.checked()?;
        Ok(Self {
            settings,
            by_latency: settings.initial as f64,
            by_failures: settings.max as f64,
            baseline: Baseline::default(),
            probe: None,
            window: Window::new(None, 0),
            length: settings.window,
            in_flight: 0,
            held_back: 0,
        })
    }

    /// Starts a message, unless the limit is reached. If the limit is only observed, it always
    /// starts it, and counts it.
    ///
    /// Each granted start must be followed by one [`finish`](Self::finish).
    pub fn try_start(&mut self) -> bool {
        let is_above = self.in_flight >= self.limit();
        self.held_back += u64::from(is_above);
        if is_above && self.settings.mode == Mode::Enforce {
            return false;
        }
        self.in_flight += 1;
        self.window.start(self.in_flight);
        true
    }

    /// Ends a message that was started `latency` ago. Returns the change, if this was the last
    /// message of a window that changed the limit.
    pub fn finish(
        &mut self,
        now: Duration,
        latency: Duration,
        outcome: Outcome,
    ) -> Option<LimitChange> {
        self.window.end(now, latency, outcome, self.in_flight);
        self.in_flight = self.in_flight.saturating_sub(1);
        let summary = self.window.close(now, self.length, self.samples())?;
        self.window = Window::new(Some(now), self.in_flight);
        let from = self.limit();
        let reason = self.judge(&summary);
        let to = self.limit();
        (from != to).then_some(LimitChange { from, to, reason, mode: self.settings.mode })
    }

    /// How many may be in flight now, or would be allowed to be.
    pub fn limit(&self) -> usize {
        self.probe.map_or(self.smaller(), |probe| probe.limit.min(self.smaller())) as usize
    }

    fn smaller(&self) -> f64 {
        self.by_latency.min(self.by_failures)
    }

    /// How many messages must have ended before a window has a result. While failures keep the
    /// limit small, that is twice the limit: otherwise slow handlers that arrive one by one would
    /// take long to recover.
    fn samples(&self) -> u64 {
        match self.by_failures < self.by_latency {
            true => LEAST_SAMPLES.min(2 * self.limit() as u64),
            false => LEAST_SAMPLES,
        }
    }

    fn judge(&mut self, summary: &Summary) -> LimitReason {
        let latency = summary.latency;
        let round = latency.or(self.baseline.lowest()).map_or(Duration::ZERO, seconds);
        self.length = self.settings.window.max(round);
        let probing = self.probe.is_some();
        self.probe =
            self.probe.and_then(|probe| probe.next(&self.settings, &mut self.baseline, latency));
        let before = (self.by_latency, self.by_failures);
        if !probing || failures::are_many(summary) {
            self.by_failures = failures::next(&self.settings, before.1, summary, before.0);
        }
        match latency {
            _ if failures::are_many(summary) => LimitReason::Failures { share: summary.failed },
            _ if probing => LimitReason::Probe,
            Some(latency) => self.judge_latency(summary, latency),
            None => LimitReason::Room,
        }
    }

    /// A window without many failures, in which the whole limit was allowed.
    fn judge_latency(&mut self, summary: &Summary, latency: f64) -> LimitReason {
        self.baseline.see(latency);
        let lowest = self.baseline.lowest().unwrap_or(latency);
        let before = self.by_latency;
        self.by_latency = gradient::next(&self.settings, before, summary, latency, lowest);
        if self.baseline.is_stale() && self.refresh_baseline(summary, latency) {
            return LimitReason::Probe;
        }
        match self.by_latency < before {
            true => LimitReason::Slow { latency: seconds(latency), baseline: seconds(lowest) },
            false => LimitReason::Room,
        }
    }

    /// Measures the latency at rest again: at once if there is little load, otherwise with a probe.
    /// True if a probe has begun.
    fn refresh_baseline(&mut self, summary: &Summary, latency: f64) -> bool {
        let limit = self.smaller();
        let little = summary.is_well_under(limit);
        match self.settings.mode {
            _ if little => self.baseline.measured(latency),
            Mode::Observe => self.baseline.drift(),
            Mode::Enforce => {
                self.probe = Some(Probe::begin(&self.settings, limit, latency));
                return true;
            }
        }
        false
    }
}

/// A time that may exceed all bounds.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
