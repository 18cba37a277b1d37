//! How many events of each partition wait for full pools, without counting all of them each time an
//! event is handed on.
//!
//! Pools take many events at a time and do not report which. So only an upper bound is known for
//! each partition: its number at the last full count, plus the events added since. It may be too
//! high by the number of events handed on since then, over all partitions. If that difference
//! matters, all events are counted again, but only once an eighth of a share has been handed on. So
//! an event handed on costs at most a look at a few events for each partition.

use std::{collections::HashMap, mem};

/// By the number of the assignment.
#[derive(Debug, Default)]
pub(crate) struct HeldBack {
    /// No more of each wait.
    bounds: HashMap<u32, usize>,
    /// Their sum.
    sum: usize,
}

impl HeldBack {
    /// This many events of an assignment have come, and may wait.
    pub(crate) fn came(&mut self, assigned: u32, events: usize) {
        *self.bounds.entry(assigned).or_default() += events;
        self.sum += events;
    }

    /// Nothing of this assignment waits any more.
    pub(crate) fn forget(&mut self, assigned: u32) {
        self.sum -= self.bounds.remove(&assigned).unwrap_or_default();
    }

    /// No more of it wait, of `all` that do.
    pub(crate) fn at_most(&self, assigned: u32, all: usize) -> usize {
        self.bounds.get(&assigned).copied().unwrap_or_default().min(all)
    }

    /// True if as many wait as are its share, or nearly. `all` wait of all partitions; `count`
    /// counts those of each.
    pub(crate) fn is_behind(
        &mut self,
        assigned: u32,
        share: usize,
        all: usize,
        count: impl FnOnce() -> HashMap<u32, usize>,
    ) -> bool {
        let (bound, gone) = (self.at_most(assigned, all), self.sum.saturating_sub(all));
        if bound < share || bound >= share + gone {
            return bound >= share;
        }
        if gone < share.div_ceil(8) {
            return true;
        }
        self.bounds = count();
        self.sum = self.bounds.values().sum();
        self.at_most(assigned, all) >= share
    }
}

/// Counts those of each assignment. Most come one behind the other of one: that is looked up once
/// for all of them.
#[derive(Default)]
pub(crate) struct HeldBackCounts {
    counts: HashMap<u32, usize>,
    /// Those of the last assignment that are not among them yet.
    run: (u32, usize),
}

impl HeldBackCounts {
    pub(crate) fn add(&mut self, assigned: u32) {
        if assigned != self.run.0 {
            self.end_run(assigned);
        }
        self.run.1 += 1;
    }

    fn end_run(&mut self, next: u32) {
        let (assigned, events) = mem::replace(&mut self.run, (next, 0));
        if events > 0 {
            *self.counts.entry(assigned).or_default() += events;
        }
    }

    pub(crate) fn finish(mut self) -> HashMap<u32, usize> {
        self.end_run(0);
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What waits truly, and how often it was counted.
    #[derive(Default)]
    struct Truth {
        waits: HashMap<u32, usize>,
        counted: usize,
    }

    impl Truth {
        fn all(&self) -> usize {
            self.waits.values().sum()
        }

        fn is_behind(&mut self, held: &mut HeldBack, assigned: u32, share: usize) -> bool {
            let (all, Self { waits, counted }) = (self.all(), self);
            held.is_behind(assigned, share, all, || {
                *counted += 1;
                waits.clone()
            })
        }
    }

    #[test]
    fn d15_what_waits_is_counted_for_the_partition_that_it_is_of() {
        let mut counts = HeldBackCounts::default();
        [1, 1, 2, 2, 2, 1, 0, 3].into_iter().for_each(|assigned| counts.add(assigned));
        assert_eq!(counts.finish(), [(0, 1), (1, 3), (2, 3), (3, 1)].into());
        assert_eq!(HeldBackCounts::default().finish(), HashMap::new());
    }

    #[test]
    fn d15_a_partition_is_behind_with_its_share_and_another_is_not() {
        let (mut held, mut truth) = (HeldBack::default(), Truth::default());
        for (assigned, events) in [(1, 80), (2, 30)] {
            held.came(assigned, events);
            truth.waits.insert(assigned, events);
        }
        assert!(truth.is_behind(&mut held, 1, 80) && !truth.is_behind(&mut held, 2, 80));
        assert!(!truth.is_behind(&mut held, 3, 80), "nothing is known of it");
        assert_eq!(truth.counted, 0);
    }

    #[test]
    fn d15_what_has_gone_on_is_found_by_counting_now_and_then() {
        let (mut held, mut truth) = (HeldBack::default(), Truth::default());
        held.came(1, 800);
        held.came(2, 400);
        truth.waits = [(1, 800), (2, 400)].into();
        for left in (0..800).rev() {
            truth.waits.insert(1, left);
            let is_behind = truth.is_behind(&mut held, 1, 400);
            assert!(is_behind || left < 400, "{left}");
            assert!(!is_behind || left >= 350, "{left} are less than seven eighths");
        }
        assert!((1..=8).contains(&truth.counted), "{}", truth.counted);
    }

    #[test]
    fn d15_what_went_straight_into_a_pool_holds_nobody_up() {
        let (mut held, mut truth) = (HeldBack::default(), Truth::default());
        held.came(1, 100);
        truth.waits.insert(1, 100);
        // Ten thousand of another partition pass, and none waits.
        held.came(2, 10_000);
        assert!(!truth.is_behind(&mut held, 2, 50), "they are counted");
        assert!(truth.is_behind(&mut held, 1, 50));
        assert_eq!(truth.counted, 1);
    }
}
