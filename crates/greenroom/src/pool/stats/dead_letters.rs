//! Dead letters, counted by their reasons.

use std::{fmt, sync::atomic::Ordering};

use super::counters::DeadLetterCounters;
use crate::DeadLetterReason;

/// How many dead letters there were for each reason.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct DeadLetterCounts([u64; DeadLetterReason::ALL.len()]);

impl DeadLetterCounts {
    /// For this reason.
    pub fn of(&self, reason: DeadLetterReason) -> u64 {
        self.0[reason as usize]
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (DeadLetterReason, u64)> {
        DeadLetterReason::ALL.into_iter().zip(self.0)
    }

    /// Whatever the reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(in crate::pool) fn add(&mut self, counters: &DeadLetterCounters) {
        for (count, counter) in self.0.iter_mut().zip(&counters.0) {
            *count += counter.load(Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for DeadLetterCounts {
    /// Only reasons that have occurred.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().filter(|(_, count)| *count > 0)).finish()
    }
}
