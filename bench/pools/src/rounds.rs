//! Rounds of baseline and greenroom in turn, each with the distance of the cores beside it;
//! ratios are of one round.

use measure::{Distance, Watch, ping_pong};
use serde_json::{Value, json};

use crate::Failure;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_near_only_where_the_cores_were_near_throughout() {
        let sample = |trips| Sample { value: 1.0, also: Vec::new(), trips, others: 0.0 };
        let of = |a, b| Round { baseline: sample(a), greenroom: sample(b) }.distance().name();
        assert_eq!(of([100.0, 110.0], [120.0, 90.0]), "near");
        assert_eq!(of([100.0, 110.0], [120.0, 500.0]), "mixed");
        assert_eq!(of([500.0, 510.0], [520.0, 490.0]), "far");
    }
}
