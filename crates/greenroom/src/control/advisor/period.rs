//! The looks of a period, added up.

use std::time::Duration;

use super::{Figures, Inbox};

/// What a pool looks like at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Messages that hold a place: queued, or waiting for another attempt.
    pub(crate) queued: usize,
    pub(crate) capacity: usize,
    pub(crate) busy: usize,
    pub(crate) workers: usize,
}

/// Observations since the period began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Period {
    looks: u32,
    queued: f64,
    used: f64,
    busy: f64,
    peak: usize,
}

impl Period {
    pub(crate) fn look(&mut self, look: &Look) {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        self.looks += 1;
        self.queued += look.queued as f64;
        self.used += share(look.queued, look.capacity);
        self.busy += share(look.busy, look.workers).min(1.0);
        self.peak = self.peak.max(look.queued);
    }

    /// Ends the period and begins the next: the averages, in the figures of a pool with
    /// this bound and size.
    pub(crate) fn end(
        &mut self,
        at: Duration,
        over: Duration,
        inbox: Inbox,
        workers: usize,
    ) -> Figures {
        let Self { looks, queued, used, busy, peak } = std::mem::take(self);
        let looks = f64::from(looks.max(1));
        Figures {
            at,
            over,
            queued: queued / looks,
            peak,
            utilisation: used / looks,
            busy: busy / looks,
            ..Figures::of(inbox, workers)
        }
    }
}
