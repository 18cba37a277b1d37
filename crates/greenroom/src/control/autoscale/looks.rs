//! The observations that make up a sample.

use std::time::Duration;

use super::Sample;

/// The time between two observations of busy workers. A sample consists of ten, so that a handler
/// that takes part of a second counts for that part.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = 10;

/// Observations since the last sample.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    taken: u32,
    /// The sum of the shares of workers that were busy.
    busy: f64,
    /// Attempts that had ended at the last sample.
    ended: u64,
}

impl Looks {
    /// Adds an observation of the busy workers.
    pub(crate) fn add(&mut self, busy: usize, workers: usize) {
        self.taken += 1;
        self.busy += (busy as f64 / workers.max(1) as f64).min(1.0);
    }

    /// Whether a sample is due.
    pub(crate) fn are_enough(&self) -> bool {
        self.taken >= LOOKS
    }

    /// Completes a sample in which `handled` counts all attempts since the pool was built; the
    /// observations for the next one begin.
    pub(crate) fn complete(&mut self, now: Sample) -> Sample {
        let before = std::mem::replace(self, Self { ended: now.handled, ..Self::default() });
        Sample {
            busy: before.busy / f64::from(before.taken.max(1)),
            handled: now.handled.saturating_sub(before.ended),
            ..now
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(handled: u64) -> Sample {
        Sample { at: LOOK, queued: 5, oldest: LOOK, workers: 4, handled, busy: 0.0 }
    }

    #[test]
    fn p23_a_sample_is_the_average_of_ten_looks() {
        let mut looks = Looks::default();
        for busy in 0..10 {
            assert!(!looks.are_enough(), "after {busy} looks");
            looks.add(busy % 2, 2);
        }
        assert!(looks.are_enough());
        let expected =
            Sample { at: LOOK, queued: 5, oldest: LOOK, busy: 0.25, workers: 4, handled: 7 };
        assert_eq!(looks.complete(totals(7)), expected);
        assert!(!looks.are_enough(), "the next sample has looks of its own");
    }

    #[test]
    fn p23_each_sample_has_what_has_ended_since_the_last_one() {
        let mut looks = Looks::default();
        let handled = [7, 7, 12, 11].map(|ended| looks.complete(totals(ended)).handled);
        assert_eq!(handled, [7, 0, 5, 0], "a count that was read a little early is no flood");
    }

    #[test]
    fn p23_workers_that_still_end_are_not_more_than_all() {
        let mut looks = Looks::default();
        looks.add(3, 1);
        assert_eq!(looks.complete(totals(0)).busy, 1.0);
        looks.add(0, 0);
        assert_eq!(looks.complete(totals(0)).busy, 0.0, "a pool without workers");
    }
}
