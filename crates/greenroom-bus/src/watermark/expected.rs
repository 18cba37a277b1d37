//! The positions that an assignment remembers as open, until they are received.

use std::{collections::VecDeque, ops::Range};

/// Ranges in rising order, used up from the front.
#[derive(Debug, Default)]
pub(super) struct Expected {
    ranges: VecDeque<Range<u64>>,
    /// How many positions that is.
    positions: u64,
}

/// The positions met on the way to another one.
pub(super) struct Passed {
    /// Positions before it that were expected and did not come.
    pub(super) gone: u64,
    /// Whether it was expected itself.
    pub(super) is_expected: bool,
}

impl Expected {
    pub(super) fn new(ranges: &[Range<u64>]) -> Self {
        let positions = ranges.iter().map(|range| range.end - range.start).sum();
        Self { ranges: ranges.iter().cloned().collect(), positions }
    }

    pub(super) fn len(&self) -> u64 {
        self.positions
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        self.ranges.front().map(|range| range.start)
    }

    /// Behind the last of them.
    pub(super) fn end(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.end)
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.ranges.iter().cloned()
    }

    /// Nothing up to this position is expected any more.
    pub(super) fn pass(&mut self, position: u64) -> Passed {
        let gone = self.take_below(position);
        let is_expected = self.take_below(position + 1) == 1;
        Passed { gone, is_expected }
    }

    /// Those below this are expected no more; how many.
    pub(super) fn take_below(&mut self, end: u64) -> u64 {
        let mut taken = 0;
        while let Some(first) = self.ranges.front_mut().filter(|first| first.start < end) {
            let until = end.min(first.end);
            taken += until - first.start;
            first.start = until;
            if first.is_empty() {
                self.ranges.pop_front();
            }
        }
        self.positions -= taken;
        taken
    }
}
