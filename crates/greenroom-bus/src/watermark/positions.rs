//! The settled positions of a partition, in their stored form.

use std::ops::Range;

/// Which positions of a partition are done: all below [`next`](Self::next) that are
/// not [`open`](Self::open).
///
/// Its size depends on the open positions in between, however much is settled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Positions {
    next: u64,
    /// Rising, not empty, not touching, all below `next`.
    open: Vec<Range<u64>>,
}

/// Ranges that cannot be those of open positions: stored by another program, or damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the open positions {}..{} do not lie above {above} and up to {next}", range.start, range.end)]
#[non_exhaustive]
pub struct InvalidPositions {
    /// The first range that is wrong.
    pub range: Range<u64>,
    /// Where the ranges before it end.
    pub above: u64,
    /// Where all have to end.
    pub next: u64,
}

impl Positions {
    /// Everything before this position is done, and nothing from there on.
    pub fn starting_at(next: u64) -> Self {
        Self { next, open: Vec::new() }
    }

    /// The stored positions: everything below `next` is settled, except these.
    ///
    /// # Errors
    /// The first range that is empty, or not above those before it, or not below `next`.
    pub fn new(
        next: u64,
        open: impl IntoIterator<Item = Range<u64>>,
    ) -> Result<Self, InvalidPositions> {
        let mut positions = Self::starting_at(next);
        let mut above = 0;
        for range in open {
            if range.is_empty() || range.start < above || range.end > next {
                return Err(InvalidPositions { range, above, next });
            }
            above = range.end;
            positions.open_too(range);
        }
        Ok(positions)
    }

    /// Like [`new`](Self::new), for ranges that are known to be in order.
    pub(super) fn from_ranges(next: u64, open: impl Iterator<Item = Range<u64>>) -> Self {
        let mut positions = Self::starting_at(next);
        open.for_each(|range| positions.open_too(range));
        positions
    }

    fn open_too(&mut self, range: Range<u64>) {
        match self.open.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.open.push(range),
        }
    }

    /// The first that is not done, from which on a source delivers again.
    pub fn lowest(&self) -> u64 {
        self.open.first().map_or(self.next, |first| first.start)
    }

    /// Nothing was received from here on.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The open positions below `next`, in rising order; ranges do not touch.
    pub fn open(&self) -> &[Range<u64>] {
        &self.open
    }

    /// How many positions are open below `next`.
    pub fn count_open(&self) -> u64 {
        self.open.iter().map(|range| range.end - range.start).sum()
    }

    /// The settled positions beyond [`lowest`](Self::lowest), in rising order. Includes positions
    /// that were never received.
    pub fn done(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = self.open.iter().map(|open| open.end);
        let ends = self.open.iter().skip(1).map(|open| open.start).chain([self.next]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|done| !done.is_empty())
    }

    /// How many positions that is.
    pub fn count_done(&self) -> u64 {
        self.next - self.lowest() - self.count_open()
    }

    /// Whether a position need not be delivered again. Takes a search among the open positions.
    pub fn is_done(&self, position: u64) -> bool {
        if position >= self.next {
            return false;
        }
        let after = self.open.partition_point(|open| open.end <= position);
        self.open.get(after).is_none_or(|open| position < open.start)
    }
}
