//! Random numbers, from a seed.

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// Random numbers without a system call and without a lock (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Debug)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Between 0 and 1.
    pub(crate) fn fraction(&self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below this one, or 0. The bias of the multiplication is below one in 2^32 (Lemire:
    /// Fast Random Integer Generation in an Interval, 2019).
    pub(crate) fn below(&self, limit: usize) -> usize {
        (((self.bits() >> 32) * limit as u64) >> 32) as usize
    }

    fn bits(&self) -> u64 {
        let mut z = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::seeded(random_seed())
    }
}

/// New with each process.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(0_u8)
}
