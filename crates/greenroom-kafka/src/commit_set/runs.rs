//! A set as the lengths of its runs.

use greenroom_bus::watermark::Positions;

/// Offsets beyond this are none that a broker gives.
const LAST: u64 = i64::MAX as u64;

/// This many open offsets, followed by this many settled ones. Neither is 0, except for the first
/// open run of a set that another program has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) open: u64,
    pub(super) done: u64,
}

/// The runs from the lowest open offset on, until behind the last that is done.
pub(super) fn from_positions(positions: &Positions) -> Vec<Run> {
    let mut at = positions.lowest();
    let runs = positions.done().map(|done| {
        let run = Run { open: done.start - at, done: done.end - done.start };
        at = done.end;
        run
    });
    runs.collect()
}

/// The positions that these runs describe from this offset on. `None` if they are not a valid set
/// of offsets.
pub(super) fn positions(offset: u64, runs: impl IntoIterator<Item = Run>) -> Option<Positions> {
    let (mut at, mut open) = (offset, Vec::new());
    for run in runs {
        let start = at;
        at = at.checked_add(run.open)?;
        if run.open > 0 {
            open.push(start..at);
        }
        at = at.checked_add(run.done).filter(|end| *end <= LAST)?;
    }
    Positions::new(at, open).ok()
}

/// How many offsets they are.
pub(super) fn span(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.open + run.done).sum()
}

/// Runs from single bits; a set bit is a settled offset.
#[derive(Default)]
pub(super) struct FromBits {
    runs: Vec<Run>,
    now: (u64, u64),
}

impl FromBits {
    pub(super) fn push(&mut self, is_done: bool, count: u64) {
        if count == 0 {
            return;
        }
        if !is_done && self.now.1 > 0 {
            let (open, done) = std::mem::take(&mut self.now);
            self.runs.push(Run { open, done });
        }
        match is_done {
            true => self.now.1 += count,
            false => self.now.0 += count,
        }
    }

    /// Open offsets at the end count as not mentioned.
    pub(super) fn end(mut self) -> Vec<Run> {
        if let (open, done @ 1..) = self.now {
            self.runs.push(Run { open, done });
        }
        self.runs
    }
}
