//! Any worker, at random.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{About, Choice, Crew, Policy};

/// A worker chosen at random; if it is full, the next one with room.
#[derive(Debug)]
pub struct Random(Dice);

impl Random {
    /// Seeded by the process.
    pub fn new() -> Self {
        Self(Dice::new())
    }

    /// Seeded, for reproducible tests.
    pub fn seeded(seed: u64) -> Self {
        Self(Dice::seeded(seed))
    }
}

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> Policy<M> for Random {
    fn choose(&self, _message: &M, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        Choice::At(crew.with_room_from(self.0.throw(crew.len())))
    }

    fn is_strict(&self) -> bool {
        false
    }
}

/// Random numbers without a system call and without a lock (Steele, Lea, Flood:
/// SplitMix64, OOPSLA 2014).
#[derive(Debug)]
pub(super) struct Dice(AtomicU64);

impl Dice {
    pub(super) fn new() -> Self {
        Self::seeded(RandomState::new().hash_one(0_u8))
    }

    pub(super) fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `sides`, or 0. The bias of the multiplication is below one in 2^32 (Lemire:
    /// Fast Random Integer Generation in an Interval, 2019).
    pub(super) fn throw(&self, sides: usize) -> usize {
        let mut z = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((((z ^ (z >> 31)) >> 32) * sides as u64) >> 32) as usize
    }
}
