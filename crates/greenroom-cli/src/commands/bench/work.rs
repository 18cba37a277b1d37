//! Work of a known length: a chain of dependent arithmetic that neither compiler nor processor can
//! shorten.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Long enough to be measured, short enough not to be noticed.
const CALIBRATION_TURNS: u32 = 500_000;
/// Measurements of which the best counts, as every disturbance makes one longer.
const TRIALS: usize = 5;

/// The computation of a handler for each message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    turns: u32,
}

impl Work {
    /// Work that takes about this long on this machine; none for zero.
    pub(super) fn new(length: Duration) -> Self {
        if length.is_zero() {
            return Self { turns: 0 };
        }
        let turns = length.as_secs_f64() / seconds_per_turn();
        Self { turns: turns.round().max(1.0) as u32 }
    }

    pub(super) fn run(self, seed: u64) {
        if self.turns > 0 {
            black_box(turn(self.turns, seed));
        }
    }
}

fn turn(turns: u32, seed: u64) -> u64 {
    let step =
        |x: u64, i| (x ^ u64::from(i)).wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
    (0..turns).fold(seed, step)
}

fn seconds_per_turn() -> f64 {
    let trial = |_| {
        let started = Instant::now();
        black_box(turn(black_box(CALIBRATION_TURNS), black_box(1)));
        started.elapsed().as_secs_f64() / f64::from(CALIBRATION_TURNS)
    };
    // Above zero, whatever the clock says.
    (0..TRIALS).map(trial).fold(f64::INFINITY, f64::min).max(1e-12)
}
