//! The observations of a period, added up.

use std::time::Duration;

use super::Figures;

/// The time between two observations: short enough for an average, and long enough that the locks
/// of the queues do not matter.
const LOOK: Duration = Duration::from_secs(1);
/// The fewest observations in a period: in a short one, they come more often.
const LEAST_LOOKS: u32 = 10;
/// The most observations in a period: in a long one, they come less often.
const MOST_LOOKS: u32 = 300;

/// The times of a period's observations, since its beginning. `chance` is from 0 to 1, and differs
/// each time: an event that recurs on every second would otherwise be seen always, or never.
pub(crate) fn moments(
    period: Duration,
    mut chance: impl FnMut() -> f64,
) -> impl Iterator<Item = Duration> {
    let looks = (period.div_duration_f64(LOOK) as u32).clamp(LEAST_LOOKS, MOST_LOOKS);
    (0..looks).map(move |look| period.mul_f64((f64::from(look) + chance()) / f64::from(looks)))
}

/// The state of a pool at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Messages that hold a place: queued, or waiting for a retry.
    pub(crate) queued: usize,
    pub(crate) capacity: usize,
    pub(crate) busy: usize,
    pub(crate) workers: usize,
}

/// Observations since the period began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period {
    /// The figures when it began.
    began: Figures,
    looks: u32,
    queued: f64,
    used: f64,
    busy: f64,
    peak: usize,
}

impl Period {
    /// Begins with these figures, in which `inbox_full` and `started` count since the pool was
    /// built.
    pub(crate) fn begin(began: Figures) -> Self {
        Self { began, looks: 0, queued: 0.0, used: 0.0, busy: 0.0, peak: 0 }
    }

    pub(crate) fn look(&mut self, look: &Look) {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        self.looks += 1;
        self.queued += look.queued as f64;
        self.used += share(look.queued, look.capacity);
        self.busy += share(look.busy, look.workers).min(1.0);
        self.peak = self.peak.max(look.queued);
    }

    /// Ends the period with these figures, and begins the next.
    pub(crate) fn end(&mut self, now: Figures) -> Figures {
        let Self { began, looks, queued, used, busy, peak } =
            std::mem::replace(self, Self::begin(now));
        let looks = f64::from(looks.max(1));
        Figures {
            over: now.at.saturating_sub(began.at),
            inbox_full: now.inbox_full.saturating_sub(began.inbox_full),
            started: now.started.saturating_sub(began.started),
            queued: queued / looks,
            utilisation: used / looks,
            busy: busy / looks,
            peak,
            ..now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::advisor::Inbox;

    const SECOND: Duration = Duration::from_secs(1);

    /// The counts of a pool with this many workers at that time.
    fn totals(workers: usize, at: Duration, inbox_full: u64, started: u64) -> Figures {
        let figures = Figures::of(Inbox::PerWorker(10), workers);
        Figures { at, inbox_full, started, most_workers: 9, p99: Some(SECOND), ..figures }
    }

    #[test]
    fn h10_each_look_has_its_part_of_the_period() {
        for (period, looks) in [(1, 10), (10, 10), (60, 60), (300, 300), (86_400, 300)] {
            let period = period * SECOND;
            let mut chances = [0.0, 0.999, 0.5].into_iter().cycle();
            let due: Vec<_> = moments(period, || chances.next().unwrap_or_default()).collect();
            assert_eq!(due.len(), looks, "{period:?}");
            for (part, due) in (0..).zip(due) {
                let (from, to) = (part * period / looks as u32, (part + 1) * period / looks as u32);
                assert!((from..to).contains(&due), "{due:?} is not in part {part} of {period:?}");
            }
        }
    }

    #[test]
    fn h10_the_figures_of_a_period_are_averages_and_differences() {
        let mut period = Period::begin(totals(2, SECOND, 3, 100));
        period.look(&Look { queued: 10, capacity: 20, busy: 2, workers: 2 });
        period.look(&Look { queued: 4, capacity: 20, busy: 1, workers: 2 });
        let expected = Figures {
            over: 5 * SECOND,
            queued: 7.0,
            peak: 10,
            utilisation: 0.35,
            busy: 0.75,
            ..totals(2, 6 * SECOND, 2, 50)
        };
        assert_eq!(period.end(totals(2, 6 * SECOND, 5, 150)), expected);
        let unseen = period.end(totals(3, 8 * SECOND, 5, 150));
        assert_eq!((unseen.over, unseen.inbox_full, unseen.started), (2 * SECOND, 0, 0));
        assert_eq!((unseen.peak, unseen.busy, unseen.workers), (0, 0.0, 3), "no look was taken");
    }

    #[test]
    fn h10_a_pool_without_workers_or_room_is_looked_at_as_well() {
        let mut period = Period::begin(totals(0, SECOND, 0, 0));
        period.look(&Look { queued: 2, capacity: 0, busy: 1, workers: 0 });
        let figures = period.end(totals(0, SECOND, 0, 0));
        assert_eq!((figures.utilisation, figures.busy), (2.0, 1.0));
    }
}
