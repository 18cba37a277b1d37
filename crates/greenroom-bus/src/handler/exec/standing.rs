//! Whether the program is known to work: this distinguishes an event that kills its worker from a
//! broken program.
//!
//! A process that dies with its first event in hand may have died of the event, or of itself. The
//! event is to blame if the program works otherwise, and only answers show that: those of all
//! workers count, because they run the same program. One answer is enough to blame a few events and
//! no more, so that a program that stops working (its database is gone, a new version is broken)
//! does not take one event after the other with it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The most events that may be given up in a row, over all workers, without an answer in between.
/// Then the program is considered broken, until it has answered again.
pub(super) const BLAMED_IN_A_ROW: u32 = 3;

/// The evidence of the answers so far about the program; shared by all workers.
#[derive(Debug, Default)]
pub(super) struct ProgramStanding {
    /// How many more events may be blamed. Nothing hangs on the order of these accesses to others.
    blames: AtomicU32,
}

impl ProgramStanding {
    /// A process has answered.
    pub(super) fn answered(&self) {
        // Read first: with many answers, the line of the cache stays with all workers.
        if self.blames.load(Relaxed) != BLAMED_IN_A_ROW {
            self.blames.store(BLAMED_IN_A_ROW, Relaxed);
        }
    }

    /// True if a process that dies or hangs is not the program's own fault.
    pub(super) fn is_good(&self) -> bool {
        self.blames.load(Relaxed) > 0
    }

    /// Blames an event. False if the program is broken.
    pub(super) fn blame(&self) -> bool {
        self.blames.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p18_a_program_that_has_never_answered_blames_nobody() {
        let standing = ProgramStanding::default();
        assert!(!standing.is_good() && !standing.blame());
    }

    #[test]
    fn p18_answers_are_good_for_a_few_events_in_a_row() {
        let standing = ProgramStanding::default();
        for _ in 0..2 {
            standing.answered();
            standing.answered();
            for _ in 0..BLAMED_IN_A_ROW {
                assert!(standing.is_good() && standing.blame());
            }
            assert!(!standing.is_good() && !standing.blame());
        }
    }
}
