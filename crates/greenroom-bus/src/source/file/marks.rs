//! Places in a file from which it can be read on.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// This many offsets are remembered, however far the file is read beyond the first open line.
const MOST: usize = 1_024;

/// The beginning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Its number, from 1.
    pub(super) line: u64,
    /// The bytes before it, decompressed.
    pub(super) byte: u64,
}

impl Mark {
    /// Of the first line.
    pub(super) const START: Self = Self { line: 1, byte: 0 };
}

/// Some of the offsets from the first open line on: when there are too many, every other one is
/// dropped, and so is every other one that comes, at the price of reading and skipping some more
/// lines.
#[derive(Debug)]
pub(super) struct Marks {
    /// Rising; never empty.
    marks: VecDeque<Mark>,
    /// One in this many is kept.
    stride: u64,
    /// How many came since one was kept.
    passed: u64,
}

impl Marks {
    pub(super) fn new(first: Mark) -> Self {
        Self { marks: [first].into(), stride: 1, passed: 0 }
    }

    pub(super) fn push(&mut self, mark: Mark) {
        self.passed += 1;
        if self.passed < self.stride {
            return;
        }
        self.passed = 0;
        if self.marks.len() >= MOST {
            self.thin_out();
        }
        self.marks.push_back(mark);
    }

    fn thin_out(&mut self) {
        let mut keep = false;
        self.marks.retain(|_| {
            keep = !keep;
            keep
        });
        self.stride *= 2;
    }

    /// The last one at or before this line, which only rises. Those before it are forgotten.
    pub(super) fn before(&mut self, line: u64) -> Mark {
        while self.marks.get(1).is_some_and(|second| second.line <= line) {
            self.marks.pop_front();
        }
        if self.marks.len() < MOST / 4 {
            self.stride = self.stride.div_ceil(2);
        }
        self.marks.front().copied().unwrap_or(Mark::START)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_of_many_places_the_first_stays_and_the_others_thin_out() {
        let mut marks = Marks::new(Mark::START);
        for n in 1..=1_000_000 {
            marks.push(Mark { line: n * 10, byte: n * 1_000 });
        }
        assert!(marks.marks.len() <= MOST, "{}", marks.marks.len());
        assert_eq!(marks.before(9), Mark::START);
        let near = marks.before(5_000_000);
        assert!((4_900_000..=5_000_000).contains(&near.line), "{near:?}");
        assert_eq!(near.byte, near.line * 100);
    }
}
