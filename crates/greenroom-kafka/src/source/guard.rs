//! The head-of-line guard (F08): where many events of a partition are stuck, the oldest are moved
//! to a topic, so that the partition is read on.
//!
//! The settled offsets beyond the lowest open one have to fit in a commit, or the partition is read
//! no further. One stuck event takes a few bytes of that; a thousand of them, scattered among
//! settled ones, fill it. Then everything waits for the oldest.
//!
//! ```text
//! what is done, as a share of what a commit holds        > 90 %   ─┐
//! of the offsets from the lowest open one on, done       ≥ 98 %   ─┼─▶ the oldest open ones: read
//! a budget of so many events in a time                   is left  ─┘   again, published, settled
//! ```
//!
//! A moved event leaves its line, and with it the order of its key (D02). Its record is read again
//! from the broker, and published unchanged with headers that name its origin. It is settled only
//! with the broker's answer. Its handler may still be at work: that result does not count any more,
//! and the reader of the topic handles the event a second time.

mod allowance;
mod moves;
mod moving;

use std::time::{Duration, Instant};

use greenroom_bus::watermark::Positions;

pub(super) use self::moves::{Moved, Moves};
use self::{allowance::Allowance, moving::Mover};
use super::{limits::Limits, setup::SourceSetup};

/// The used share of a commit: above this, the oldest may be moved.
const FULL: f64 = 0.9;
/// Of the offsets from the lowest open one on, done: with less, handlers are slow, and none is
/// stuck.
const DONE: f64 = 0.98;
/// Events that are moved at a time, before it is looked again whether that was enough.
const AT_ONCE: u64 = 64;
/// Between two looks at the partitions; and after something could not be moved.
const LOOK: Duration = Duration::from_millis(100);
const AFTER_FAILURE: Duration = Duration::from_secs(10);

pub(super) struct Guard {
    topic: String,
    allowance: Allowance,
    mover: Mover,
    looks_at: Instant,
    /// One move is under way.
    is_moving: bool,
}

impl Guard {
    /// # Errors
    /// An option cannot be used; in words for an operator.
    pub(super) fn begin(name: &str, setup: &SourceSetup) -> Result<Option<Self>, String> {
        let Some(guard) = &setup.input.guard else { return Ok(None) };
        Ok(Some(Self {
            topic: guard.topic.clone(),
            allowance: Allowance::new(guard.events, guard.every, Instant::now()),
            mover: Mover::begin(name, setup, &guard.topic)?,
            looks_at: Instant::now(),
            is_moving: false,
        }))
    }

    pub(super) fn topic(&self) -> &str {
        &self.topic
    }

    /// Whether it is time to look at the partitions.
    pub(super) fn looks(&mut self) -> bool {
        let now = Instant::now();
        let is_due = !self.is_moving && now >= self.looks_at;
        if is_due {
            self.looks_at = now + LOOK;
        }
        is_due
    }

    /// The offsets of a partition that are to be moved now, paid from the budget. Empty if there
    /// are none. A full one is already read no further.
    pub(super) fn choose(
        &mut self,
        positions: &Positions,
        limits: &Limits,
        is_full: bool,
    ) -> Vec<u64> {
        if !is_blocked(positions, limits, is_full) {
            return Vec::new();
        }
        let count = positions.count_open().min(AT_ONCE);
        let paid = self.allowance.take(count, Instant::now());
        positions.open().iter().cloned().flatten().take(paid as usize).collect()
    }

    pub(super) fn moves(&mut self, moves: Moves) {
        self.is_moving = true;
        self.mover.ask(moves);
    }

    pub(super) fn moved(&mut self) -> Option<Moved> {
        let moved = self.mover.answer()?;
        self.is_moving = false;
        self.allowance.give_back(moved.left);
        if moved.failed.is_some() {
            self.looks_at = Instant::now() + AFTER_FAILURE;
        }
        Some(moved)
    }
}

fn is_blocked(positions: &Positions, limits: &Limits, is_full: bool) -> bool {
    let span = positions.next() - positions.lowest();
    let is_done = positions.count_done() as f64 >= DONE * span as f64;
    span > 0 && is_done && (is_full || limits.used(positions) > FULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many offsets, one in so many is open.
    fn positions(next: u64, one_in: u64) -> Positions {
        let open = (0..next / one_in).map(|at| at * one_in..at * one_in + 1);
        Positions::new(next, open).expect("in order")
    }

    #[test]
    fn f08_a_partition_is_blocked_by_a_full_set_of_which_nearly_all_is_done() {
        let limits = Limits::new(512, true);
        let is_blocked = |next, one_in| is_blocked(&positions(next, one_in), &limits, false);
        assert!(!is_blocked(20_000, 100), "there is room");
        assert!(is_blocked(200_000, 100));
        assert!(!is_blocked(200_000, 20), "handlers are slow, and none is stuck");
        assert!(!is_blocked(1_000_000, 1_000_000), "one stuck event fills nothing");
        assert!(!is_blocked(0, 1));
    }

    /// Where little fits, it is read no further before that is 90% full.
    #[test]
    fn f08_a_partition_that_is_read_no_further_is_blocked_however_full_it_is() {
        let limits = Limits::new(128, true);
        assert!(!is_blocked(&positions(5_000, 100), &limits, false));
        assert!(is_blocked(&positions(5_000, 100), &limits, true));
        assert!(!is_blocked(&positions(5_000, 20), &limits, true), "handlers are slow");
    }

    #[test]
    fn f08_a_source_that_remembers_nothing_is_never_blocked() {
        let limits = Limits::new(512, false);
        assert!(!is_blocked(&positions(10_000_000, 100), &limits, false));
    }
}
