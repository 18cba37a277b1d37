//! Sequences of keys, drawn before anything is timed.

use std::sync::{Arc, OnceLock};

/// Distinct keys that are drawn from.
pub const DISTINCT: u64 = 1_000_000;
/// Keys of a sequence, which is then begun again: a number of its own, so that drawing costs
/// the same whatever is sent.
const LENGTH: u64 = 1 << 21;

/// A sequence without end.
#[derive(Clone)]
pub enum Keys {
    Drawn(Arc<[u64]>),
    /// No key twice.
    Distinct {
        first: u64,
    },
    /// Each of so many as likely as any other, computed as it is sent: for more keys
    /// than a drawn sequence has.
    Among(u64),
}

impl Keys {
    pub fn of(&self, seq: u64) -> u64 {
        match self {
            Self::Drawn(keys) => keys[(seq % LENGTH) as usize],
            Self::Distinct { first } => first + seq,
            Self::Among(distinct) => mixed(seq.wrapping_add(1).wrapping_mul(GOLDEN)) % distinct,
        }
    }
}

/// What SplitMix64 steps by.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Its last part, which spreads what it is given over all numbers.
fn mixed(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A fixed sequence, so that every run and either side sends the same keys.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// From 0 up to 1, exclusive.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Each key as likely as any other.
pub fn uniform() -> Keys {
    static DRAWN: OnceLock<Keys> = OnceLock::new();
    DRAWN.get_or_init(draw_uniform).clone()
}

fn draw_uniform() -> Keys {
    let mut random = Random(1);
    Keys::Drawn((0..LENGTH).map(|_| random.next() % DISTINCT).collect())
}

/// The key of rank r with a probability of 1/r over the sum of all: Zipf's law with exponent 1.
pub fn zipf() -> Keys {
    static DRAWN: OnceLock<Keys> = OnceLock::new();
    DRAWN.get_or_init(draw_zipf).clone()
}

fn draw_zipf() -> Keys {
    let mut sum = 0.0;
    let weights = (1..=DISTINCT).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let cumulative: Vec<f64> = weights.collect();
    let mut random = Random(2);
    let draw = |_| {
        let point = random.unit() * cumulative[cumulative.len() - 1];
        cumulative.partition_point(|upto| *upto <= point) as u64
    };
    Keys::Drawn((0..LENGTH).map(draw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of(keys: &Keys, wanted: impl Fn(u64) -> bool) -> f64 {
        (0..LENGTH).filter(|seq| wanted(keys.of(*seq))).count() as f64 / LENGTH as f64
    }

    #[test]
    fn zipf_draws_a_key_by_the_inverse_of_its_rank() {
        let keys = zipf();
        let harmonic: f64 = (1..=DISTINCT).map(|rank| 1.0 / rank as f64).sum();
        for rank in [1, 2, 10] {
            let share = share_of(&keys, |key| key == rank - 1);
            let expected = 1.0 / (rank as f64 * harmonic);
            assert!((share / expected - 1.0).abs() < 0.02, "rank {rank}: {share}, not {expected}");
        }
        assert_eq!(share_of(&keys, |key| key >= DISTINCT), 0.0);
    }

    #[test]
    fn keys_that_are_computed_are_spread_as_well() {
        let keys = Keys::Among(10_000_000);
        let share = share_of(&keys, |key| key < 1_000_000);
        assert!((share - 0.1).abs() < 0.002, "{share}");
        assert!((0..100).all(|seq| Keys::Among(1).of(seq) == 0));
    }

    #[test]
    fn uniform_draws_each_tenth_of_the_keys_as_often() {
        let keys = uniform();
        for tenth in 0..10 {
            let share = share_of(&keys, |key| key / (DISTINCT / 10) == tenth);
            assert!((share - 0.1).abs() < 0.002, "tenth {tenth}: {share}");
        }
    }
}
