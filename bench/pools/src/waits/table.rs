//! The table of workload W: every side of a row in turn, medians, and how a pool stands to what is
//! asked of it.

use std::{fs, path::PathBuf};

use measure::{Distance, median, ping_pong};
use serde_json::{Value, json};

use super::{Cost, Shape, Side, Wait};
use crate::{Failure, report};

pub struct Options {
    pub shapes: Vec<Shape>,
    /// Sides that are run, of those that say something about a row.
    pub sides: Vec<Side>,
    pub rounds: usize,
    /// Messages that a quick row sends in a repetition.
    pub messages: u64,
    pub json: Option<PathBuf>,
}

/// What is asked of a row: of a ratio of medians, at least or at most.
struct Asked {
    what: &'static str,
    ratio: f64,
    floor: f64,
    target: f64,
    at_least: bool,
}

/// All repetitions of a row, by side.
struct Measured {
    shape: Shape,
    costs: Vec<(Side, Vec<Cost>)>,
    distance: Distance,
}

/// Runs each row, and prints it.
///
/// # Errors
/// When a side has lost a message.
pub fn run(options: &Options) -> Result<(), Failure> {
    let about = format!(
        "workload W, {} rounds after a warm-up, all sides of a row in turn",
        options.rounds
    );
    let setting = report::setting(about);
    setting.iter().for_each(|(name, value)| println!("{name:<11} {value}"));
    println!("\nmillions of messages per second | processor time in ns per message");
    let mut rows = Vec::new();
    for shape in &options.shapes {
        let measured = Measured::of(*shape, options)?;
        println!("{}", measured.line());
        rows.push(measured.json());
    }
    if let Some(file) = &options.json {
        let setting: serde_json::Map<_, _> =
            setting.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        fs::write(file, format!("{:#}\n", json!({ "setting": setting, "rows": rows })))?;
    }
    Ok(())
}

impl Measured {
    fn of(shape: Shape, options: &Options) -> Result<Self, Failure> {
        let messages = shape.messages(options.messages);
        let mut costs: Vec<_> = shape
            .sides()
            .iter()
            .filter(|side| options.sides.contains(side))
            .map(|side| (*side, Vec::new()))
            .collect();
        let mut trips = vec![ping_pong()];
        for round in 0..=options.rounds {
            for (side, costs) in &mut costs {
                let cost = shape.measure(*side, messages);
                let cost = cost.map_err(|error| format!("{shape}, {}: {error}", side.name()))?;
                if round > 0 {
                    costs.push(cost);
                }
            }
            trips.push(ping_pong());
        }
        Ok(Self { shape, costs, distance: Distance::of(&trips) })
    }

    fn costs(&self, side: Side) -> Option<&[Cost]> {
        self.costs.iter().find(|(of, _)| *of == side).map(|(_, costs)| costs.as_slice())
    }

    /// The median of the ratios of each round, of a pool to another side.
    fn ratio(&self, to: Side, of: fn(&Cost) -> f64) -> Option<f64> {
        let (own, other) = (self.costs(Side::Pool)?, self.costs(to)?);
        let ratios: Vec<_> =
            own.iter().zip(other).map(|(own, other)| of(own) / of(other)).collect();
        Some(median(&ratios))
    }

    fn asked(&self) -> Vec<Asked> {
        let at_least = |what, to, floor, target| {
            let ratio = self.ratio(to, Cost::per_second)?;
            Some(Asked { what, ratio, floor, target, at_least: true })
        };
        let to_channels =
            |floor, target| at_least("throughput to channels", Side::Channels, floor, target);
        let time_to_channels = |floor, target| {
            let ratio = self.ratio(Side::Channels, Cost::processor_each)?;
            let what = "processor time to channels";
            Some(Asked { what, ratio, floor, target, at_least: false })
        };
        let asked = match (self.shape.wait, self.shape.keys) {
            (Wait::Yields, None) if matches!(self.shape.workers, 16 | 256) => vec![
                to_channels(1.0, 1.2),
                at_least("to for_each_concurrent", Side::Concurrent, 0.85, 1.0),
            ],
            (Wait::Yields | Wait::Replies, None) => vec![to_channels(1.0, 1.2)],
            (Wait::Yields, Some(1_000)) => vec![to_channels(0.5, 0.8)],
            (Wait::Yields, Some(_)) => vec![to_channels(0.85, 1.2)],
            (Wait::Sleeps, None) => vec![time_to_channels(1.15, 0.9)],
            (Wait::Sleeps, Some(_)) => vec![time_to_channels(1.4, 1.0)],
            (Wait::Replies, Some(_)) | (Wait::Sometimes, _) => Vec::new(),
        };
        asked.into_iter().flatten().collect()
    }

    fn line(&self) -> String {
        let side = |(side, costs): &(Side, Vec<Cost>)| {
            let rates: Vec<_> = costs.iter().map(Cost::per_second).collect();
            let each: Vec<_> = costs.iter().map(Cost::processor_each).collect();
            format!("{} {:.3} | {:.0}", side.name(), median(&rates), median(&each))
        };
        let sides: Vec<_> = self.costs.iter().map(side).collect();
        let asked: Vec<_> = self.asked().iter().map(Asked::line).collect();
        let (name, distance) = (self.shape.to_string(), self.distance.name());
        format!("{name:<26} {distance:<5} {}; {}", sides.join(", "), asked.join(", "))
    }

    fn json(&self) -> Value {
        let side = |(side, costs): &(Side, Vec<Cost>)| {
            let rounds = costs.iter().map(|cost| {
                json!({ "per_second": cost.per_second() * 1e6, "processor_ns": cost.processor_each() })
            });
            (side.name().to_owned(), Value::Array(rounds.collect()))
        };
        let sides: serde_json::Map<_, _> = self.costs.iter().map(side).collect();
        json!({ "row": self.shape.to_string(), "distance": self.distance.name(), "sides": sides })
    }
}

impl Asked {
    fn is_within(&self, limit: f64) -> bool {
        match self.at_least {
            true => self.ratio >= limit,
            false => self.ratio <= limit,
        }
    }

    fn line(&self) -> String {
        let verdict = match (self.is_within(self.floor), self.is_within(self.target)) {
            (_, true) => "target",
            (true, false) => "floor",
            (false, false) => "BELOW FLOOR",
        };
        format!("{} {:.2} ({verdict})", self.what, self.ratio)
    }
}
