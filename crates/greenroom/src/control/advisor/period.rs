//! The looks of a period, added up.

use std::time::Duration;

use super::{Figures, Inbox};

/// The time between two looks: short enough for an average, and long enough that the locks of the
/// queues do not matter.
const LOOK: Duration = Duration::from_secs(1);
/// The fewest looks in a period: if it is short, they come sooner.
const LEAST_LOOKS: u32 = 10;
/// The most looks in a period: if it is long, they come later.
const MOST_LOOKS: u32 = 300;

/// When the looks of a period are due, since its beginning. `chance` is from 0 to 1, another one
/// each time: an event that recurs on every second would otherwise be seen always, or never.
pub(crate) fn moments(
    period: Duration,
    mut chance: impl FnMut() -> f64,
) -> impl Iterator<Item = Duration> {
    let looks = (period.div_duration_f64(LOOK) as u32).clamp(LEAST_LOOKS, MOST_LOOKS);
    (0..looks).map(move |look| period.mul_f64((f64::from(look) + chance()) / f64::from(looks)))
}

/// What a pool looks like at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Messages that hold a place: queued, or waiting for another attempt.
    pub(crate) queued: usize,
    pub(crate) capacity: usize,
    pub(crate) busy: usize,
    pub(crate) workers: usize,
}

/// What a pool has counted until one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// By a clock that never goes back.
    pub(crate) at: Duration,
    /// How often the inbox has become full.
    pub(crate) inbox_full: u64,
    /// Attempts that have begun.
    pub(crate) started: u64,
}

/// How a pool is set when a period ends, and what it has measured meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeriodEnd {
    pub(crate) inbox: Inbox,
    pub(crate) workers: usize,
    pub(crate) most_workers: usize,
    pub(crate) p99: Option<Duration>,
}

/// Observations since the period began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Period {
    began: Counts,
    looks: u32,
    queued: f64,
    used: f64,
    busy: f64,
    peak: usize,
}

impl Period {
    /// Begins when the pool has counted this.
    pub(crate) fn begin(began: Counts) -> Self {
        Self { began, ..Self::default() }
    }

    pub(crate) fn look(&mut self, look: &Look) {
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        self.looks += 1;
        self.queued += look.queued as f64;
        self.used += share(look.queued, look.capacity);
        self.busy += share(look.busy, look.workers).min(1.0);
        self.peak = self.peak.max(look.queued);
    }

    /// Ends the period and begins the next.
    pub(crate) fn end(&mut self, now: Counts, ending: PeriodEnd) -> Figures {
        let Self { began, looks, queued, used, busy, peak } =
            std::mem::replace(self, Self::begin(now));
        let PeriodEnd { inbox, workers, most_workers, p99 } = ending;
        let looks = f64::from(looks.max(1));
        Figures {
            at: now.at,
            over: now.at.saturating_sub(began.at),
            inbox,
            workers,
            most_workers,
            inbox_full: now.inbox_full.saturating_sub(began.inbox_full),
            queued: queued / looks,
            peak,
            utilisation: used / looks,
            busy: busy / looks,
            p99,
            started: now.started.saturating_sub(began.started),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn ending(workers: usize) -> PeriodEnd {
        PeriodEnd { inbox: Inbox::PerWorker(10), workers, most_workers: 9, p99: Some(SECOND) }
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
        let mut period = Period::begin(Counts { at: SECOND, inbox_full: 3, started: 100 });
        period.look(&Look { queued: 10, capacity: 20, busy: 2, workers: 2 });
        period.look(&Look { queued: 4, capacity: 20, busy: 1, workers: 2 });
        let now = Counts { at: 6 * SECOND, inbox_full: 5, started: 150 };
        let expected = Figures {
            at: 6 * SECOND,
            over: 5 * SECOND,
            most_workers: 9,
            inbox_full: 2,
            queued: 7.0,
            peak: 10,
            utilisation: 0.35,
            busy: 0.75,
            p99: Some(SECOND),
            started: 50,
            ..Figures::of(Inbox::PerWorker(10), 2)
        };
        assert_eq!(period.end(now, ending(2)), expected);
        let next = Counts { at: 8 * SECOND, ..now };
        let unseen = period.end(next, ending(3));
        assert_eq!((unseen.over, unseen.inbox_full, unseen.started), (2 * SECOND, 0, 0));
        assert_eq!((unseen.peak, unseen.busy, unseen.workers), (0, 0.0, 3), "no look was taken");
    }

    #[test]
    fn h10_a_pool_without_workers_or_room_is_looked_at_as_well() {
        let mut period = Period::default();
        period.look(&Look { queued: 2, capacity: 0, busy: 1, workers: 0 });
        let figures = period.end(Counts::default(), ending(0));
        assert_eq!((figures.utilisation, figures.busy), (2.0, 1.0));
    }
}
