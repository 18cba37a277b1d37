//! The settings of an adaptive limit.

use std::time::Duration;

use crate::{
    SpawnError,
    size::{MAX_WORKERS, check_range},
};

/// The default minimum: with none, nothing would ever be learned.
const DEFAULT_MIN: usize = 1;
/// The default initial limit. Growth from here takes a few windows; too high a start floods.
const DEFAULT_INITIAL: usize = 20;
/// The default time between two decisions: five a second recover from an outage within seconds.
const DEFAULT_WINDOW: Duration = Duration::from_millis(200);
/// The default slowdown that is normal: covers the spread of a window's mean.
const DEFAULT_TOLERANCE: f64 = 1.5;

/// Whether a limit is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing is held back; the limit reports the value that it would enforce. Watch it for some
    /// time before you enforce it.
    #[default]
    Observe,
    /// Messages above the limit wait.
    Enforce,
}

/// The settings: the bounds of the limit, and how it judges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adaptive {
    /// The smallest limit; 1 by default. Above 20, set `initial` too.
    pub min: usize,
    /// The largest limit, up to 65,536.
    pub max: usize,
    /// The limit at the start; 20 by default, within the bounds.
    pub initial: usize,
    /// The least time between two decisions; 200 ms by default. A window is never shorter than the
    /// handlers take, so that each shows the effect of the limit before it.
    pub window: Duration,
    /// How many times slower than at rest handling may be, at least 1; 1.5 by default. A higher
    /// value tolerates more variation, and a longer queue at the other side.
    pub tolerance: f64,
    /// Whether the limit is enforced; [`Mode::Observe`] by default.
    pub mode: Mode,
}

impl Adaptive {
    /// Up to this many at once, with the default of every other field; to set one of those, write
    /// `Adaptive { tolerance: 2.0, ..Adaptive::up_to(64) }`.
    pub const fn up_to(max: usize) -> Self {
        Self {
            min: DEFAULT_MIN,
            max,
            initial: if max < DEFAULT_INITIAL { max } else { DEFAULT_INITIAL },
            window: DEFAULT_WINDOW,
            tolerance: DEFAULT_TOLERANCE,
            mode: Mode::Observe,
        }
    }

    /// Enforces the limit.
    #[must_use]
    pub const fn enforced(self) -> Self {
        Self { mode: Mode::Enforce, ..self }
    }

    pub(super) fn checked(self) -> Result<Self, SpawnError> {
        let Self { min, max, initial, window, tolerance, .. } = self;
        let is_factor = tolerance >= 1.0 && tolerance.is_finite();
        let (percent, between) = ((tolerance * 100.0) as usize, "limit.min to limit.max");
        check_range((1..=MAX_WORKERS).contains(&max), "limit.max", max, "1 to 65,536")?;
        check_range((1..=max).contains(&min), "limit.min", min, "1 to limit.max")?;
        check_range((min..=max).contains(&initial), "limit.initial", initial, between)?;
        check_range(!window.is_zero(), "limit.window", 0, "above 0")?;
        check_range(is_factor, "limit.tolerance (percent)", percent, "at least 100")?;
        Ok(self)
    }

    /// Limits a value to the bounds.
    pub(super) fn clamp(&self, limit: f64) -> f64 {
        limit.clamp(self.min as f64, self.max as f64)
    }
}
