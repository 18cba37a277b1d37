//! The messages and their times, drawn from a seed before anything runs.

use std::time::Duration;

use greenroom_bus::source::generator::zipf::{Chance, Zipf};

use crate::commands::trial::Arrival;

/// Messages per second, on average.
const RATE: f64 = 1_000.0;
/// Keys apart from the slow one; the n-th is drawn with a weight of 1/n.
const KEYS: u32 = 500;
/// The fraction of messages with the slow key. At 200 ms each, they keep its worker busy seven
/// tenths of the time, so that its own line grows and shrinks without running away.
const SLOW_PART: f64 = 0.0035;
/// The slow key: with hashing, it shares its worker with a sixteenth of all other messages, so that
/// hashing looks neither better nor worse than it is.
pub(super) const SLOW: u32 = 1_000;
/// Its name on the screen.
pub(super) const SLOW_NAME: &str = "order-0042";

/// All messages, in the order of their arrival. Their keys are [`SLOW`], or from 1 to [`KEYS`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrivals {
    /// The messages.
    pub(super) all: Vec<Arrival>,
    /// The number of messages of each key.
    of_keys: Vec<u32>,
    /// The period in which they arrive.
    pub(super) length: Duration,
}

impl Arrivals {
    /// Poisson arrivals over a time, with skewed keys; the same for the same seed.
    pub(super) fn draw(seed: u64, length: Duration, slow_key: bool) -> Self {
        let (zipf, mut chance) = (Zipf::new(KEYS, 1.0), Chance::new(seed));
        let (mut all, mut of_keys) = (Vec::new(), vec![0; keys()]);
        let mut due = 0.0;
        loop {
            due += -(1.0 - chance.unit()).ln() / RATE;
            if due >= length.as_secs_f64() {
                return Self { all, of_keys, length };
            }
            let is_slow = chance.unit() < SLOW_PART && slow_key;
            let key = if is_slow { SLOW } else { zipf.draw(&mut chance) };
            let number = &mut of_keys[key as usize];
            all.push(Arrival {
                due: Duration::from_secs_f64(due),
                key: Some(key),
                number: *number,
                share: 0,
            });
            *number += 1;
        }
    }

    /// Keys that have messages.
    pub(super) fn keys_used(&self) -> usize {
        self.of_keys.iter().filter(|count| **count > 0).count()
    }

    /// The fraction of messages with the most frequent key.
    pub(super) fn hottest_part(&self) -> f64 {
        let most = self.of_keys.iter().max().copied().unwrap_or(0);
        f64::from(most) / (self.all.len().max(1) as f64)
    }
}

/// Every key is below this number.
pub(super) fn keys() -> usize {
    SLOW as usize + 1
}
