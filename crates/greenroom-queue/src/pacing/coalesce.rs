//! A short pause of a worker whose sender runs beside it, so that messages arrive in larger groups.
//!
//! A worker that is quicker than a single sender on another thread finds two or three messages each
//! time, and meets the sender at the queue's lock and at the ready map for each such handful: the
//! cache lines of both move back and forth between two cores, and both are busy with that. If the
//! worker leaves the sender alone for a moment, it finds dozens, and the sender was not disturbed.
//! Network cards hold back interrupts for the same reason (Salah, Qahtan: Boosting throughput of
//! Snort NIDS under Linux, 2008, has a survey of interrupt coalescing).

use std::{
    hint::spin_loop,
    time::{Duration, Instant},
};

/// How long the sender is left alone: in this time it sends several dozen messages.
const PAUSE: Duration = Duration::from_micros(2);

/// Looks at the clock are few: each takes as long as two or three of these rounds.
const SPINS_PER_LOOK: u32 = 16;

/// Fewer messages than this in a row are a handful.
const PLENTY: u32 = 64;

/// A pause that brought fewer messages was not worth it.
const WORTH_IT: u32 = 16;

/// Handfuls taken without a pause after a pause that was not worth it.
const SKIPS: u8 = 16;

/// Whether a worker pauses: as long as that brings many messages at a time; otherwise
/// occasionally, to find out.
#[derive(Default)]
pub(super) struct Coalescing {
    /// Messages that have come since are due to a pause.
    paused: bool,
    /// Handfuls to be taken without one.
    skips: u8,
}

impl Coalescing {
    /// A queue has run dry after this many messages in a row. True if the worker is to
    /// [leave the sender alone](leave_sender_alone) before it looks again, provided they came
    /// `is_remote`: from a sender on another thread.
    pub(super) fn pauses_after(&mut self, in_a_row: u32, is_remote: impl FnOnce() -> bool) -> bool {
        if std::mem::take(&mut self.paused) && in_a_row < WORTH_IT {
            self.skips = SKIPS;
        }
        // One alone may be all there is for long.
        if !(2..PLENTY).contains(&in_a_row) {
            return false;
        }
        if self.skips > 0 {
            self.skips -= 1;
            return false;
        }
        self.paused = is_remote();
        self.paused
    }

    /// The pause has brought nothing at all.
    pub(super) fn was_in_vain(&mut self) {
        self.paused = false;
        self.skips = SKIPS;
    }
}

/// Leaves the sender alone for a moment. The thread is kept: to hand it to other tasks and to have
/// it back takes as long.
pub fn leave_sender_alone() {
    let since = Instant::now();
    while since.elapsed() < PAUSE {
        (0..SPINS_PER_LOOK).for_each(|_| spin_loop());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the worker paused after each handful of this size.
    fn pauses(coalescing: &mut Coalescing, handfuls: &[u32]) -> Vec<bool> {
        handfuls.iter().map(|in_a_row| coalescing.pauses_after(*in_a_row, || true)).collect()
    }

    #[test]
    fn a_worker_pauses_as_long_as_that_brings_many() {
        let mut coalescing = Coalescing::default();
        assert_eq!(pauses(&mut coalescing, &[2, 16, 63, 40]), [true; 4]);
        assert_eq!(pauses(&mut coalescing, &[15]), [false], "not worth it");
    }

    #[test]
    fn a_worker_that_has_paused_in_vain_tries_again_after_a_few_handfuls() {
        let mut coalescing = Coalescing::default();
        assert_eq!(pauses(&mut coalescing, &[2, 3]), [true, false]);
        let skipped = pauses(&mut coalescing, &[3; SKIPS as usize]);
        assert_eq!(skipped.iter().filter(|paused| **paused).count(), 1, "{skipped:?}");
        coalescing.was_in_vain();
        assert_eq!(pauses(&mut coalescing, &[30; SKIPS as usize]), [false; SKIPS as usize]);
        assert_eq!(pauses(&mut coalescing, &[30]), [true]);
    }

    #[test]
    fn a_worker_that_finds_one_or_plenty_or_shares_the_thread_does_not_pause() {
        let mut coalescing = Coalescing::default();
        assert_eq!(pauses(&mut coalescing, &[0, 1, 64, 1_000]), [false; 4]);
        assert!(!coalescing.pauses_after(2, || false));
        assert!(coalescing.pauses_after(2, || true), "that was not in vain");
    }

    #[test]
    fn a_pause_is_short() {
        let since = Instant::now();
        leave_sender_alone();
        assert!(since.elapsed() >= PAUSE);
    }
}
