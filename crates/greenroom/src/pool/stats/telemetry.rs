//! Counters and measurements.

use std::sync::atomic::Ordering;

use greenroom_queue::{coarse::CoarseClock, padded::Padded};
use tokio::time::Instant;

use super::{Measured, counters::PoolCounters, sketch::Sketch};
use crate::pool_events::{drop_log::DropLog, full_log::FullLog};

/// Messages that a single actor has handled before any is measured.
const FEW: u64 = 64;

/// Counters and measurements.
pub(crate) struct Telemetry {
    /// Counters with several, rare writers.
    pub(crate) counters: PoolCounters,
    /// The time for everything that need not know it exactly.
    pub(crate) coarse: Padded<CoarseClock>,
    /// How long messages took.
    pub(crate) measured: Measured,
    /// The keys with the most work.
    pub(crate) sketch: Option<Box<Sketch>>,
    /// Whether the full pool was reported.
    pub(crate) full: FullLog,
    /// Messages dropped for lack of room that were not reported.
    pub(crate) drops: DropLog,
}

impl Telemetry {
    /// For a `single` actor, hardly anything is measured; the hottest keys are tracked if there are
    /// keys.
    pub(crate) fn new(is_watched: bool, single: bool, keyed: bool) -> Self {
        // With very many actors that handle a few messages each, none can afford measurements.
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

    /// Counts a sender that has found no room and begins to wait.
    #[cold]
    pub(crate) fn count_wait(&self) {
        self.counters.waits.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the mailbox has become full.
    pub(crate) fn full_episodes(&self) -> u64 {
        self.full.episodes()
    }
}
