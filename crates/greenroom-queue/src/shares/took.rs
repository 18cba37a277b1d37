//! How long attempts have taken.

use crate::wake::QUICK;

/// As many attempts are looked back at to say how long they usually last.
const SMOOTHING: u128 = 16;

/// No attempt counts as longer, in nanoseconds, to say whether attempts are quick: one that was
/// interrupted says little.
const SLOW: u64 = 16 * QUICK.as_nanos() as u64;

/// As many attempts are looked back at to say whether they are quick.
const PACED: u64 = 64;

/// How long the attempts of a pool have taken, in nanoseconds.
pub(super) struct Took {
    /// All of them together.
    pub(super) sum: u64,
    /// How long an attempt takes on average over the last ones, none of which counts for much.
    pace: u64,
    /// How long attempts take, about: the mean over the time in hand, not over the attempts, as it
    /// is the long ones that workers will still have in hand when others come free.
    pub(super) typical: u64,
}

impl Took {
    pub(super) fn new() -> Self {
        Self { sum: 0, pace: SLOW, typical: 1 }
    }

    /// An attempt has ended.
    pub(super) fn note(&mut self, took: u64) {
        self.sum = self.sum.saturating_add(took);
        self.typical = follow(self.typical, took);
        self.pace = (self.pace * (PACED - 1) + took.min(SLOW)) / PACED;
    }

    /// How long attempts take on average, if they are quick.
    pub(super) fn quick_pace(&self) -> Option<u64> {
        (self.pace < QUICK.as_nanos() as u64).then_some(self.pace)
    }
}

/// A mean, after one more value that counts by its size.
fn follow(mean: u64, value: u64) -> u64 {
    let (old, new) = (u128::from(mean), u128::from(value));
    let (weight, all) = (new, new + SMOOTHING * old);
    let next = (old * (all - weight) + new * weight) / all;
    u64::try_from(next.max(1)).unwrap_or(u64::MAX)
}
