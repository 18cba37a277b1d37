//! Work of a known length: arithmetic that depends on itself, so that neither compiler nor
//! processor can shorten it.

use std::{hint::black_box, time::Instant};

const CALIBRATION_TURNS: u32 = 2_000_000;

/// What a handler computes for each message.
#[derive(Clone, Copy)]
pub struct Work {
    turns: u32,
}

impl Work {
    pub const NONE: Self = Self { turns: 0 };

    pub fn run(self, seed: u64) {
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

/// How long a turn takes here: the best of several measurements, as everything that
/// disturbs makes it longer.
#[derive(Clone, Copy)]
pub struct Calibration {
    nanos_per_turn: f64,
}

impl Calibration {
    pub fn measure() -> Self {
        let nanos = |_| {
            let start = Instant::now();
            black_box(turn(black_box(CALIBRATION_TURNS), black_box(1)));
            start.elapsed().as_nanos() as f64 / f64::from(CALIBRATION_TURNS)
        };
        Self { nanos_per_turn: (0..9).map(nanos).fold(f64::INFINITY, f64::min) }
    }

    /// Work that takes this long; none for 0.
    pub fn work(self, nanos: u32) -> Work {
        Work { turns: (f64::from(nanos) / self.nanos_per_turn).round() as u32 }
    }
}
