//! Decides once a second how many workers a pool should have.
//!
//! ```text
//!             late, and the workers are busy ─────────────▶ grow at once to the size that is needed
//! sample ──▶  needed less than there is, for the whole
//!             time of the cool-down ──────────────────────▶ shrink to the most that was needed in it
//!             otherwise ──────────────────────────────────▶ nothing
//! ```
//!
//! The decision is a state machine without clock, task or lock. A pool with
//! [`autoscale`](crate::PoolBuilder::autoscale) feeds it one [`Sample`] a second and carries out
//! its decisions; for other pools, their owner can.
//!
//! **The need** to be in time: with `r` messages handled per second by a busy worker, `q / (r t)`
//! workers clear a queue of `q` within the target age `t`; work that continues to arrive needs
//! `arrivals / r` more. So the pool takes all the steps at once that the measured throughput
//! justifies, and never adds more than one worker per waiting message.
//!
//! **Busy is not idle.** The decision to shrink depends on how busy the workers were, not on how
//! much they finished: a pool in which every handler takes a minute finishes nothing for a minute,
//! and keeps its size.
//!
//! **More workers do not always help.** Messages that wait behind their key, or for another
//! attempt, are late although workers are idle. A pool grows only while its workers are busy.
//!
//! The price: a pool that is sampled once a second reacts about a second late to a burst. If that
//! is too long, set a higher `min`. If the inbox is too small or too large, or the job as a whole
//! has changed, see the [`advisor`](super::advisor).

use std::time::Duration;

use crate::SpawnError;

mod decision;
pub(crate) mod looks;
mod settings;
mod throughput;

pub use decision::{Decision, Reason, Sample};
pub use settings::Autoscale;

use super::peaks::Peaks;
use throughput::Throughput;

/// The state between two samples.
#[derive(Debug, Clone)]
pub struct Autoscaler {
    settings: Autoscale,
    last: Option<Last>,
    throughput: Throughput,
    /// The time of the last change.
    changed: Option<Duration>,
    /// Ends when the pool is late, and with every change: the load of workers at another size says
    /// little.
    cooldown: Option<Cooldown>,
}

/// The period before a pool shrinks, in which it is not late.
#[derive(Debug, Clone)]
struct Cooldown {
    since: Duration,
    /// The number of busy workers in its last part.
    busy: Peaks,
}

/// The values of the last sample.
#[derive(Debug, Clone, Copy)]
struct Last {
    at: Duration,
    queued: usize,
}

impl Autoscaler {
    /// A scaler without observations.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn new(settings: Autoscale) -> Result<Self, SpawnError> {
        Ok(Self {
            settings: settings.checked()?,
            last: None,
            throughput: Throughput::default(),
            changed: None,
            cooldown: None,
        })
    }

    /// The settings.
    pub fn settings(&self) -> &Autoscale {
        &self.settings
    }

    /// Returns the decision for a sample. It assumes that a decision is carried out; if that fails,
    /// the next decision comes after the cool-down.
    ///
    /// The first sample only begins the measurement. A sample that is not later than the
    /// last is ignored.
    pub fn decide(&mut self, sample: &Sample) -> Option<Decision> {
        let last = self.last.replace(Last { at: sample.at, queued: sample.queued });
        let decision = match last {
            Some(last) if sample.at <= last.at => {
                self.last = Some(last);
                return None;
            }
            Some(last) => self.correct(sample).or_else(|| self.judge(sample, last)),
            None => self.correct(sample),
        }?;
        self.changed = Some(sample.at);
        self.cooldown = None;
        Some(decision)
    }

    /// The bounds hold at all times; no cool-down delays them.
    fn correct(&self, sample: &Sample) -> Option<Decision> {
        let Autoscale { min, max, .. } = self.settings;
        let from = sample.workers;
        if from < min {
            return Some(Decision { from, to: min, reason: Reason::BelowMinimum });
        }
        (from > max).then_some(Decision { from, to: max, reason: Reason::AboveMaximum })
    }

    fn judge(&mut self, sample: &Sample, last: Last) -> Option<Decision> {
        let seconds = (sample.at - last.at).as_secs_f64();
        let busy_workers = busy_share(sample) * sample.workers as f64;
        self.throughput.add(sample.handled, busy_workers * seconds);
        let Some(reason) = self.late(sample) else { return self.shrink(sample, busy_workers) };
        self.cooldown = None;
        self.grow(sample, last, seconds, reason)
    }

    /// Why the pool is late for lack of workers, if it is.
    fn late(&self, sample: &Sample) -> Option<Reason> {
        let Sample { queued, oldest, workers, .. } = *sample;
        if queued == 0 || busy_share(sample) < self.settings.busy_share {
            return None;
        }
        let Some(per_worker) = self.throughput.per_worker() else {
            let reason = Reason::LateAndUnmeasured { queued, oldest };
            return (oldest > self.settings.target_age).then_some(reason);
        };
        let expected = seconds(queued as f64 / (workers as f64 * per_worker));
        let is_late = oldest.max(expected) > self.settings.target_age;
        is_late.then_some(Reason::Late { queued, oldest, expected, per_worker })
    }

    fn grow(&self, sample: &Sample, last: Last, seconds: f64, reason: Reason) -> Option<Decision> {
        let since = self.changed.map(|changed| sample.at.saturating_sub(changed));
        if since.is_some_and(|since| since < self.settings.up_cooldown) {
            return None;
        }
        let needed = match reason {
            Reason::Late { per_worker, .. } => self.needed(sample, last, seconds, per_worker),
            _ => sample.workers.saturating_mul(2),
        };
        let one_each = sample.workers.saturating_add(sample.queued);
        let to = needed.min(one_each).min(self.settings.max);
        (to > sample.workers).then_some(Decision { from: sample.workers, to, reason })
    }

    /// How many workers handle the waiting messages within the target age, and also new arrivals.
    fn needed(&self, sample: &Sample, last: Last, seconds: f64, per_worker: f64) -> usize {
        let grown = sample.queued as f64 - last.queued as f64;
        let arrivals = (sample.handled as f64 + grown).max(0.0) / seconds;
        let clearing = sample.queued as f64 / self.settings.target_age.as_secs_f64();
        ((arrivals + clearing) / per_worker).ceil() as usize
    }

    fn shrink(&mut self, sample: &Sample, busy_workers: f64) -> Option<Decision> {
        let Autoscale { min, down_cooldown, busy_share, .. } = self.settings;
        let begin = || Cooldown { since: sample.at, busy: Peaks::default() };
        let cooldown = self.cooldown.get_or_insert_with(begin);
        cooldown.busy.add(sample.at, busy_workers, down_cooldown);
        if sample.at.saturating_sub(cooldown.since) < down_cooldown {
            return None;
        }
        let peak_busy = cooldown.busy.peak();
        let enough = (peak_busy / busy_share).ceil() as usize;
        let reason = Reason::Idle { peak_busy, within: down_cooldown };
        let to = enough.max(min);
        (to < sample.workers).then_some(Decision { from: sample.workers, to, reason })
    }
}

/// The share of a sample, if it is valid.
fn busy_share(sample: &Sample) -> f64 {
    if sample.busy.is_nan() { 0.0 } else { sample.busy.clamp(0.0, 1.0) }
}

/// A time that may exceed all bounds.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod simulated;
