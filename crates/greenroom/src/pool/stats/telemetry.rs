//! Counters and measurements.

use std::sync::atomic::Ordering;

use greenroom_queue::{coarse::CoarseClock, padded::Padded};
use tokio::time::Instant;

use super::{Measured, counters::PoolCounters, sketch::Sketch};
use crate::pool_events::{drop_log::DropLog, full_log::FullLog};

/// Messages that an actor which stands alone has handled before any is measured.
const FEW: u64 = 64;

/// Counters and measurements.
pub(crate) struct Telemetry {
    /// Counters with several, rare writers.
    pub(crate) counters: PoolCounters,
    /// The time for whatever need not know it exactly.
    pub(crate) coarse: Padded<CoarseClock>,
    /// How long messages took.
    pub(crate) measured: Measured,
    /// The keys with the most work.
    pub(crate) sketch: Option<Box<Sketch>>,
    /// Whether it was told that the pool is full.
    pub(crate) full: FullLog,
    /// Messages dropped because there was no room, as far as they were not told.
    pub(crate) drops: DropLog,
}

impl Telemetry {
    /// Hardly anything is measured of an actor that stands `single`; the hottest keys are tracked
    /// if there are keys.
    pub(crate) fn new(is_watched: bool, single: bool, keyed: bool) -> Self {
        // With very many actors that handle a few messages each, none has room for measurements.
        let unmeasured = if single { FEW } else { 0 };
        let now = Instant::now();
        Self {
            counters: PoolCounters::default(),
            coarse: Padded(CoarseClock::new(is_watched, unmeasured)),
            measured: Measured::default(),
            sketch: keyed.then(Box::default),
            full: FullLog::new(now),
            drops: DropLog::new(now),
        }
    }

    /// A sender that has found no room begins to wait for some.
    #[cold]
    pub(crate) fn count_wait(&self) {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the mailbox has become full.
    pub(crate) fn full_episodes(&self) -> u64 {
        self.full.episodes()
    }
}
