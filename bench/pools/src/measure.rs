//! Rounds of baseline and greenroom in turn, each with the distance of the cores beside it.
//!
//! On a virtual machine the two threads of a run may share a cache or not, and this changes every few seconds to minutes.
//! A short ping-pong of one cache line before and after each repetition says which it was; ratios are of one round.

use std::{
    hint,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{Failure, others::Watch};

/// A line that goes round in less is between near cores: about 100 ns there, about 500 ns between far ones.
const NEAR_BELOW_NANOS: f64 = 250.0;
/// Round trips of one burst, and bursts of which the median counts: together a few milliseconds.
const TRIPS: u64 = 500;
const BURSTS: u64 = 21;

/// Nanoseconds of a cache line's way from one thread to another and back.
pub fn ping_pong() -> f64 {
    let line = AtomicU64::new(0);
    let wait_for = |value| {
        while line.load(Ordering::Acquire) != value {
            hint::spin_loop();
        }
    };
    let end = 2 * TRIPS * BURSTS;
    thread::scope(|scope| {
        scope.spawn(|| {
            (1..end).step_by(2).for_each(|odd| {
                wait_for(odd);
                line.store(odd + 1, Ordering::Release);
            });
        });
        let burst = |burst: u64| {
            let start = Instant::now();
            (burst * TRIPS..(burst + 1) * TRIPS).for_each(|trip| {
                wait_for(2 * trip);
                line.store(2 * trip + 1, Ordering::Release);
            });
            start.elapsed().as_nanos() as f64 / TRIPS as f64
        };
        median(&(0..BURSTS).map(burst).collect::<Vec<_>>())
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Distance {
    Near,
    Far,
    /// It changed meanwhile.
    Mixed,
}

impl Distance {
    fn of(nanos: &[f64]) -> Self {
        match nanos.iter().filter(|nanos| **nanos < NEAR_BELOW_NANOS).count() {
            0 => Self::Far,
            near if near == nanos.len() => Self::Near,
            _ => Self::Mixed,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Mixed => "mixed",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Baseline,
    Greenroom,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Greenroom => "greenroom",
        }
    }
}

/// What one repetition of one side came to.
pub struct Figures {
    /// What rows are judged by.
    pub value: f64,
    /// Shown beside it, under these names.
    pub also: Vec<(&'static str, f64)>,
}

impl From<f64> for Figures {
    fn from(value: f64) -> Self {
        Self { value, also: Vec::new() }
    }
}

/// One repetition of one side.
#[derive(Clone)]
pub struct Sample {
    pub value: f64,
    pub also: Vec<(&'static str, f64)>,
    /// The ping-pong before and after.
    pub trips: [f64; 2],
    /// Cores that others used meanwhile.
    pub others: f64,
}

impl Sample {
    fn json(&self) -> Value {
        let also: serde_json::Map<_, _> =
            self.also.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({
            "value": self.value,
            "also": also,
            "ping_pong_ns": self.trips,
            "distance": Distance::of(&self.trips).name(),
            "others_cores": self.others,
        })
    }
}

/// One repetition of each side, one right after the other.
#[derive(Clone)]
pub struct Round {
    pub baseline: Sample,
    pub greenroom: Sample,
}

impl Round {
    pub fn distance(&self) -> Distance {
        let ([a, b], [c, d]) = (self.baseline.trips, self.greenroom.trips);
        Distance::of(&[a, b, c, d])
    }

    /// Cores that others used in the worse of its repetitions.
    pub fn others(&self) -> f64 {
        self.baseline.others.max(self.greenroom.others)
    }

    pub fn json(&self) -> Value {
        json!({
            "baseline": self.baseline.json(),
            "greenroom": self.greenroom.json(),
            "distance": self.distance().name(),
        })
    }
}

/// Runs both sides in turn, after a round that does not count where one is needed.
pub fn rounds(
    warm_up: bool,
    count: usize,
    run: &mut dyn FnMut(Side) -> Result<Figures, Failure>,
) -> Result<Vec<Round>, Failure> {
    let mut sample = |side| {
        let before = ping_pong();
        let watch = Watch::start();
        let Figures { value, also } = run(side)?;
        let others = watch.cores();
        Ok::<_, Failure>(Sample { value, also, trips: [before, ping_pong()], others })
    };
    let mut round =
        || Ok(Round { baseline: sample(Side::Baseline)?, greenroom: sample(Side::Greenroom)? });
    if warm_up {
        round()?;
    }
    (0..count).map(|_| round()).collect()
}

/// The middle value, or the mean of the middle two; not a number for none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => f64::NAN,
        (middle, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (middle, _) => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_between_the_middle_two() {
        assert_eq!(median(&[3.0, 1.0, 9.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 9.0, 2.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_round_is_near_only_where_the_cores_were_near_throughout() {
        let sample = |trips| Sample { value: 1.0, also: Vec::new(), trips, others: 0.0 };
        let of = |a, b| Round { baseline: sample(a), greenroom: sample(b) }.distance().name();
        assert_eq!(of([100.0, 110.0], [120.0, 90.0]), "near");
        assert_eq!(of([100.0, 110.0], [120.0, 500.0]), "mixed");
        assert_eq!(of([500.0, 510.0], [520.0, 490.0]), "far");
    }
}
