//! How times are spread: a few percentiles of many measurements.

use std::time::Duration;

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::pool::stamp::Stamp;

/// Digits that are kept of each time: percentiles are right to a hundredth.
const DIGITS: u8 = 2;

/// How long something took, over all the time since the pool was started. Messages are measured by sample: every one where
/// handling takes longer than two microseconds, and one in 512 otherwise, which then counts for 512.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Spread {
    /// About how many messages these are.
    pub count: u64,
    /// Half of them took no longer.
    pub p50: Duration,
    /// Nine in ten.
    pub p90: Duration,
    /// Ninety-nine in a hundred.
    pub p99: Duration,
    /// The longest of those that were measured.
    pub max: Duration,
}

impl Spread {
    fn of(times: &Histogram<u64>) -> Self {
        let at = |quantile| Duration::from_nanos(times.value_at_quantile(quantile));
        Self {
            count: times.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: Duration::from_nanos(times.max()),
        }
    }
}

/// The measurements of a pool. They take memory from the first on, and more as they are spread wider: some ten kilobytes.
#[derive(Default)]
pub(crate) struct Measured(Mutex<Option<Times>>);

struct Times {
    queued: Histogram<u64>,
    handled: Histogram<u64>,
}

impl Times {
    fn new() -> Option<Self> {
        let empty = || Histogram::new(DIGITS).ok();
        Some(Self { queued: empty()?, handled: empty()? })
    }
}

impl Measured {
    /// Adds a message: how long it waited and how long its handling took.
    #[cold]
    pub(crate) fn add(&self, queued: Duration, handled: Duration, stands_for: u64) {
        let mut times = self.0.lock();
        if times.is_none() {
            *times = Times::new();
        }
        if let Some(times) = &mut *times {
            // They grow as they need to, so there is room for every time.
            let _ = times.queued.record_n(nanos(queued), stands_for);
            let _ = times.handled.record_n(nanos(handled), stands_for);
        }
    }

    /// How long messages waited, and how long their handling took.
    pub(super) fn spreads(&self) -> (Spread, Spread) {
        let times = self.0.lock();
        let Some(times) = &*times else { return Default::default() };
        (Spread::of(&times.queued), Spread::of(&times.handled))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A message that is measured, while it is in hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measurement {
    queued: Duration,
    since: u64,
    stands_for: u64,
}

impl Measurement {
    /// It is started now.
    pub(crate) fn begin(stamp: Stamp, now: u64) -> Self {
        Self { queued: stamp.age(now), since: now, stands_for: stamp.stands_for() }
    }

    /// For how many messages it stands.
    pub(crate) fn stands_for(&self) -> u64 {
        self.stands_for
    }

    /// It ends now. Returns how long its handling took.
    pub(crate) fn end(self, now: u64, measured: &Measured) -> Duration {
        let took = Duration::from_nanos(now.saturating_sub(self.since));
        measured.add(self.queued, took, self.stands_for);
        took
    }
}
