//! The bounds and the speed of autoscaling.

use std::time::Duration;

use greenroom_config::{At, count, defaults_beside, duration, number, options, units::DAY_MS};

use crate::{SpawnError, size::check_range};

options! {
    /// Checked once a second: a pool grows when its workers are busy and what waits is late, and
    /// shrinks when fewer workers have been enough for a while.
    #[derive(Copy)]
    pub struct Autoscale = "autoscale", then Autoscale::ordered {
        /// The fewest workers.
        min: usize = count(1..=65_536).default("1");
        /// The most workers: as many as the target can take at once.
        max: usize = count(1..=65_536);
        /// The time in the queue after which the pool is late.
        target_age: Duration = duration(1..=DAY_MS).default("100ms");
        /// The least time between a change and the next growth: as long as a worker needs to start
        /// and to take effect.
        up_cooldown: Duration = duration(0..=DAY_MS).default("5s");
        /// How long fewer workers must have been enough before the pool shrinks: longer than most
        /// pauses between two bursts.
        down_cooldown: Duration = duration(0..=DAY_MS).default("30s");
        /// The share of their time that workers may be busy; near 1, queues grow without bound. A
        /// late pool grows only if they are busier.
        busy_share: f64 = number(0.01..=1.0).default("0.8");
    }
}

impl Autoscale {
    /// Settings with these bounds, and the default of every other field; to set one of those, write
    /// `Autoscale { busy_share: 0.5, ..Autoscale::between(2, 64) }`.
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
    /// let at = Duration::from_secs(1);
    /// sample = Sample { at, queued: 30, busy: 1.0, handled: 40, ..sample };
    /// let decision = scaler.decide(&sample).unwrap();
    /// // 30 / (20 × 0.1 s) for the queue, and 70 / 20 for what goes on arriving.
    /// assert_eq!(decision.to, 19);
    /// # Ok::<(), greenroom::SpawnError>(())
    /// ```
    pub fn between(min: usize, max: usize) -> Self {
        Self { min, max, ..defaults_beside(&[("max", "1")]) }
    }

    fn ordered(self, at: &mut At<'_>) -> Option<Self> {
        at.ordered("min", ("min", self.min), ("max", self.max))?;
        Some(self)
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
