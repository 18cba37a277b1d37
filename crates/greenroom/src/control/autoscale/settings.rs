//! The bounds and the speed of autoscaling.

use std::time::Duration;

use crate::{SpawnError, size::check_range};

/// The default age up to which a queue is in time.
const DEFAULT_TARGET_AGE: Duration = Duration::from_millis(100);
/// The default time between a change and the next growth: enough for new workers to start and to be
/// measured.
const DEFAULT_UP_COOLDOWN: Duration = Duration::from_secs(5);
/// The default time for which fewer must have been enough: longer than most pauses between two
/// bursts.
const DEFAULT_DOWN_COOLDOWN: Duration = Duration::from_secs(30);
/// The default share of time that workers may be busy. Queues grow without bound near 1.
const DEFAULT_BUSY_SHARE: f64 = 0.8;

/// The settings: the bounds of the size, and how fast it changes.
///
/// ```
/// use std::time::Duration;
/// use greenroom::autoscale::{Autoscale, Autoscaler, Sample};
///
/// let mut scaler = Autoscaler::new(Autoscale::between(2, 64))?;
/// let mut sample = Sample { at: Duration::ZERO, workers: 2, ..Sample::default() };
/// assert_eq!(scaler.decide(&sample), None);
///
/// // A second later: both workers are busy, each has handled 20, and 30 wait.
/// sample = Sample { at: Duration::from_secs(1), queued: 30, busy: 1.0, handled: 40, ..sample };
/// let decision = scaler.decide(&sample).unwrap();
/// assert_eq!(decision.to, 19); // 30 / (20 × 0.1 s) for the queue, and 70 / 20 for what goes on arriving
/// # Ok::<(), greenroom::SpawnError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autoscale {
    /// The fewest workers; at least 1.
    pub min: usize,
    /// The most workers; at least `min`. As many as the services that the handlers call can take at
    /// once.
    pub max: usize,
    /// How long a message may wait before the pool is late; 100 ms by default.
    pub target_age: Duration,
    /// The least time between a change and the next growth; 5 s by default. Choose the time that a
    /// worker needs to start and to show its throughput.
    pub up_cooldown: Duration,
    /// How long fewer workers must have been enough before the pool shrinks; 30 s by default.
    pub down_cooldown: Duration,
    /// The share of their time that workers may be busy, above 0 and at most 1; 0.8 by default. A
    /// late pool grows only if its workers are busier; after a shrink the rest are this busy.
    pub busy_share: f64,
}

impl Autoscale {
    /// Settings with these bounds, and the default of every other field; to set one of those, write
    /// `Autoscale { busy_share: 0.5, ..Autoscale::between(2, 64) }`.
    pub const fn between(min: usize, max: usize) -> Self {
        Self {
            min,
            max,
            target_age: DEFAULT_TARGET_AGE,
            up_cooldown: DEFAULT_UP_COOLDOWN,
            down_cooldown: DEFAULT_DOWN_COOLDOWN,
            busy_share: DEFAULT_BUSY_SHARE,
        }
    }

    pub(super) fn checked(self) -> Result<Self, SpawnError> {
        let percent = (self.busy_share * 100.0) as usize;
        let is_share = self.busy_share > 0.0 && self.busy_share <= 1.0;
        check_range(self.min > 0, "autoscale.min", self.min, "at least 1")?;
        check_range(self.max >= self.min, "autoscale.max", self.max, "at least autoscale.min")?;
        check_range(!self.target_age.is_zero(), "autoscale.target_age", 0, "above 0")?;
        check_range(is_share, "autoscale.busy_share", percent, "above 0 and up to 100%")?;
        Ok(self)
    }
}
