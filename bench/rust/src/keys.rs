//! Sequences of keys, drawn before anything is timed.

use std::sync::Arc;

/// Distinct keys that are drawn from.
const DISTINCT: u64 = 1_000_000;
/// Keys of a sequence, which is then begun again: a number of its own, so that drawing costs
/// the same whatever is sent.
const DRAWN: u64 = 1 << 21;

/// A sequence without end.
#[derive(Clone)]
pub struct Keys(Arc<[u64]>);

impl Keys {
    pub fn of(&self, seq: u64) -> u64 {
        self.0[(seq % DRAWN) as usize]
    }
}

/// A fixed sequence, so that every run of every system sends the same keys.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1, exclusive.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Each key as likely as any other.
pub fn uniform() -> Keys {
    let mut random = Random::new(1);
    Keys((0..DRAWN).map(|_| random.next() % DISTINCT).collect())
}

/// The key of rank r, which is r - 1, with a probability of 1/r over the sum of all:
/// Zipf's law with exponent 1.
pub fn zipf() -> Keys {
    let mut sum = 0.0;
    let weights = (1..=DISTINCT).map(|rank| {
        sum += 1.0 / rank as f64;
        sum
    });
    let cumulative: Vec<f64> = weights.collect();
    let mut random = Random::new(2);
    let draw = |_| {
        let point = random.unit() * cumulative[cumulative.len() - 1];
        cumulative.partition_point(|upto| *upto <= point) as u64
    };
    Keys((0..DRAWN).map(draw).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of(keys: &Keys, wanted: impl Fn(u64) -> bool) -> f64 {
        (0..DRAWN).filter(|seq| wanted(keys.of(*seq))).count() as f64 / DRAWN as f64
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
    fn uniform_draws_each_tenth_of_the_keys_as_often() {
        let keys = uniform();
        for tenth in 0..10 {
            let share = share_of(&keys, |key| key / (DISTINCT / 10) == tenth);
            assert!((share - 0.1).abs() < 0.002, "tenth {tenth}: {share}");
        }
    }
}
