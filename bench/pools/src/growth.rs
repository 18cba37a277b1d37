//! Workload H: what throughput and latency do as one thing grows and the rest stays. Nothing may
//! grow faster than it must.
//!
//! Each point is measured like a row of the table: baseline and pool in turn, with the distance of
//! the cores beside them. Latency is that of arrivals that wait for nobody, of which one in a
//! hundred sleeps: the 99th percentile of the others.

use std::{fs, path::Path};

use charts::{Curves, Panel};
use measure::{figure, max, median, min};
use serde_json::{Value, json};

use crate::{
    Failure,
    channels::MAILBOX,
    keyed::{self, Keyed},
    keys::Keys,
    options::Growth,
    report,
    rounds::{self, Figures, Round, Side},
    rows::Run,
    several::{self, Several},
    sizes,
    sleepers::{Order, Sleepers},
    stage::{PRODUCERS, Threads},
    unkeyed::{Sending, Unkeyed},
    work::Work,
};

/// Messages of a repetition.
const MESSAGES: u64 = 1_000_000;
/// Arrivals of one: half a second of them.
const ARRIVALS: u64 = 10_000;
/// Workers where they do not grow: of sends, and of arrivals, of which those
/// that sleep hold one each.
const WORKERS: usize = 4;
const WORKERS_OF_ARRIVALS: usize = 16;

/// One thing that grows.
pub struct Curve {
    pub name: &'static str,
    /// What is counted.
    grows: &'static str,
    /// What stays.
    rest: fn() -> String,
    points: &'static [u64],
    throughput: fn(u64) -> Run,
    latency: Option<fn(u64) -> Sleepers>,
}

pub static CURVES: [Curve; 6] = [
    Curve {
        name: "producers",
        grows: "producers",
        rest: || format!("{WORKERS} workers; arrivals {WORKERS_OF_ARRIVALS}"),
        points: &[1, 2, 4, 8, 16],
        throughput: |producers| unkeyed(Unkeyed { producers, ..sends() }),
        latency: Some(|senders| Sleepers { senders, ..arrivals() }),
    },
    Curve {
        name: "workers",
        grows: "workers",
        rest: || format!("{PRODUCERS} producers"),
        points: &[1, 4, 16, 64, 256, 1_024, 4_096],
        throughput: |workers| unkeyed(Unkeyed { workers: workers as usize, ..sends() }),
        latency: Some(|workers| Sleepers { workers: workers as usize, ..arrivals() }),
    },
    Curve {
        name: "keys",
        grows: "keys, each as likely",
        rest: || format!("{PRODUCERS} producers, {} workers, in order per key", keyed::WORKERS),
        points: &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000],
        throughput: among,
        latency: Some(|keys| Sleepers {
            order: Order::Keys(Keys::Among(keys), 1),
            ..Sleepers::keyed()
        }),
    },
    Curve {
        name: "size",
        grows: "bytes of a message",
        rest: || {
            let room = sizes::MAILBOX;
            format!(
                "{PRODUCERS} producers, {WORKERS} workers, room for {room} at each, at most a GiB in all"
            )
        },
        points: &sizes::SIZES,
        throughput: |bytes| Box::new(move |side| sizes::run(bytes, side)),
        latency: None,
    },
    Curve {
        name: "depth",
        grows: "room at each worker",
        rest: || {
            format!("{PRODUCERS} producers, {WORKERS} workers; arrivals {WORKERS_OF_ARRIVALS}")
        },
        points: &[10, 100, 1_000, 10_000, 100_000],
        throughput: |room| unkeyed(Unkeyed { mailbox: room as usize, ..sends() }),
        latency: Some(|room| Sleepers { mailbox: room as usize, ..arrivals() }),
    },
    Curve {
        name: "pools",
        grows: "pools",
        rest: || {
            format!("one sender, which serves them in turn, {} workers in each", several::WORKERS)
        },
        points: &[1, 4, 16, 64, 256],
        throughput: |pools| {
            let several = Several { pools: pools as usize, messages: MESSAGES };
            Box::new(move |side| several.run(side))
        },
        latency: None,
    },
];

fn sends() -> Unkeyed {
    Unkeyed::new(WORKERS, MESSAGES, Work::NONE, Threads::Two)
}

fn arrivals() -> Sleepers {
    Sleepers { workers: WORKERS_OF_ARRIVALS, ..Sleepers::unkeyed() }
}

fn unkeyed(unkeyed: Unkeyed) -> Run {
    Box::new(move |side| {
        let took = match side {
            Side::Baseline => unkeyed.baseline(),
            Side::Greenroom => unkeyed.greenroom(Sending::One),
        }?;
        Ok(Figures::from(unkeyed.messages as f64 / took.as_nanos() as f64 * 1e3))
    })
}

fn among(keys: u64) -> Run {
    let keyed = Keyed { keys: Keys::Among(keys), messages: MESSAGES, threads: Threads::Two };
    Box::new(move |side| {
        let took = match side {
            Side::Baseline => keyed.baseline(),
            Side::Greenroom => keyed.greenroom(),
        }?;
        Ok(Figures::from(MESSAGES as f64 / took.as_nanos() as f64 * 1e3))
    })
}

/// A figure of one point, in all rounds.
struct Measured {
    rounds: Vec<Round>,
    more_is_better: bool,
}

impl Measured {
    fn of(
        run: &mut dyn FnMut(Side) -> Result<Figures, Failure>,
        rounds: usize,
        more_is_better: bool,
    ) -> Result<Self, Failure> {
        Ok(Self { rounds: rounds::rounds(true, rounds, run)?, more_is_better })
    }

    fn median(&self, side: Side) -> f64 {
        let value = |round: &Round| match side {
            Side::Baseline => round.baseline.value,
            Side::Greenroom => round.greenroom.value,
        };
        median(&self.rounds.iter().map(value).collect::<Vec<_>>())
    }

    /// How many times better the pool is, round by round.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |round: &Round| round.greenroom.value / round.baseline.value;
        let ratios = self.rounds.iter().map(ratio);
        ratios.map(|ratio| if self.more_is_better { ratio } else { ratio.recip() }).collect()
    }

    /// `near 2, far 1`.
    fn distances(&self) -> String {
        let count = |name: &str| {
            let of = self.rounds.iter().filter(|round| round.distance().name() == name).count();
            (of > 0).then(|| format!("{name} {of}"))
        };
        ["near", "far", "mixed"].into_iter().filter_map(count).collect::<Vec<_>>().join(", ")
    }

    fn cells(&self) -> String {
        let (from, to) = (self.median(Side::Baseline), self.median(Side::Greenroom));
        let ratios = self.ratios();
        let ratio = format!("{:.2} ({:.2} to {:.2})", median(&ratios), min(&ratios), max(&ratios));
        let [from, to] = [from, to].map(figure);
        format!("{from:>11} {to:>11}  {ratio:<26} {:<18}", self.distances())
    }

    fn json(&self) -> Value {
        json!({
            "baseline_median": self.median(Side::Baseline),
            "greenroom_median": self.median(Side::Greenroom),
            "ratios": self.ratios(),
            "rounds": self.rounds.iter().map(Round::json).collect::<Vec<_>>(),
        })
    }
}

/// One point of a curve.
struct Point {
    at: u64,
    throughput: Measured,
    latency: Option<Measured>,
}

impl Point {
    fn measure(curve: &Curve, at: u64, rounds: usize) -> Result<Self, Failure> {
        let throughput = Measured::of(&mut (curve.throughput)(at), rounds, true)?;
        let latency = curve.latency.map(|sleepers| {
            let mut run = sleepers(at).prepare(ARRIVALS, Threads::Two);
            Measured::of(&mut run, rounds, false)
        });
        Ok(Self { at, throughput, latency: latency.transpose()? })
    }

    fn line(&self) -> String {
        let latency = self.latency.as_ref().map(Measured::cells).unwrap_or_default();
        let line = format!("{:>10} {} {latency}", self.at, self.throughput.cells());
        line.trim_end().to_owned()
    }

    fn json(&self) -> Value {
        json!({
            "at": self.at,
            "throughput": self.throughput.json(),
            "latency": self.latency.as_ref().map(Measured::json),
        })
    }
}

/// Measures, prints, and keeps what is asked for. Every curve is run, also
/// after one that lost messages.
pub fn grow(options: &Growth) -> Result<(), Failure> {
    if let Some(folder) = &options.plots {
        fs::create_dir_all(folder)?;
    }
    let setting = report::setting(format!(
        "{MESSAGES} messages of 48 bytes, room for {MAILBOX} at each worker, {ARRIVALS} arrivals at 20,000/s \
         of which one in a hundred sleeps 20 ms, {} rounds after a warm-up, baseline and greenroom in turn",
        options.rounds
    ));
    setting.iter().for_each(|(name, value)| println!("{name:<11} {value}"));
    let (mut curves, mut failed) = (Vec::new(), Vec::new());
    for curve in &options.curves {
        let points = curve.measure(options.rounds, &mut failed);
        if let Some(folder) = &options.plots
            && !points.is_empty()
        {
            curve.plot(&points, &setting, &folder.join(format!("growth-{}.svg", curve.name)))?;
        }
        let points: Vec<_> = points.iter().map(Point::json).collect();
        let rest = (curve.rest)();
        curves.push(
            json!({ "curve": curve.name, "grows": curve.grows, "rest": rest, "points": points }),
        );
    }
    if let Some(path) = &options.json {
        let setting: serde_json::Map<_, _> =
            setting.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let all = json!({ "setting": setting, "curves": curves, "failed": failed });
        fs::write(path, format!("{all:#}\n"))?;
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join(", ")).into()),
    }
}

impl Curve {
    /// All points that can be measured, printed as they come.
    fn measure(&self, rounds: usize, failed: &mut Vec<String>) -> Vec<Point> {
        println!("\n{} ({})\n{}", self.grows, (self.rest)(), self.heading());
        let mut points = Vec::new();
        for at in self.points {
            eprintln!("{}: {at}", self.name);
            match Point::measure(self, *at, rounds) {
                Ok(point) => {
                    println!("{}", point.line());
                    points.push(point);
                }
                Err(error) => {
                    println!("{at:>10} FAILED: {error}");
                    failed.push(format!("{} {at}", self.name));
                }
            }
        }
        points
    }

    fn heading(&self) -> String {
        let cells = |unit| {
            let (from, to) = (format!("by hand {unit}"), format!("pool {unit}"));
            format!("{from:>11} {to:>11}  {:<26} {:<18}", "ratio (min to max)", "rounds")
        };
        let latency = self.latency.map_or_else(String::new, |_| cells("us"));
        let line = format!("{:>10} {} {latency}", "", cells("M/s"));
        line.trim_end().to_owned()
    }

    fn plot(
        &self,
        points: &[Point],
        setting: &[(&str, String)],
        path: &Path,
    ) -> Result<(), Failure> {
        let throughput = panel("throughput", "M/s", points, |point| Some(&point.throughput));
        let latency = panel("latency, p99", "us", points, |point| point.latency.as_ref());
        let mut panels = vec![throughput];
        panels.extend(self.latency.map(|_| latency));
        let mut caption = vec![(self.rest)()];
        let wanted = ["machine", "versions", "run"];
        let told = setting.iter().filter(|(name, _)| wanted.contains(name));
        caption.extend(told.map(|(name, value)| format!("{name}: {value}")));
        Curves { grows: self.grows.to_owned(), panels, caption }.write(path)
    }
}

fn panel(
    title: &str,
    axis: &str,
    points: &[Point],
    of: impl Fn(&Point) -> Option<&Measured>,
) -> Panel {
    let curve = |name: &str, side| {
        let at = |point: &Point| Some((point.at as f64, of(point)?.median(side)));
        charts::Curve { name: name.to_owned(), points: points.iter().filter_map(at).collect() }
    };
    let curves =
        vec![curve("tokio mpsc by hand", Side::Baseline), curve("greenroom", Side::Greenroom)];
    Panel { title: title.to_owned(), axis: axis.to_owned(), curves }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::Sample;

    fn measured(pairs: &[(f64, f64)], more_is_better: bool) -> Measured {
        let sample = |value| Sample { value, also: Vec::new(), trips: [100.0, 100.0], others: 0.0 };
        let round =
            |(from, to): &(f64, f64)| Round { baseline: sample(*from), greenroom: sample(*to) };
        Measured { rounds: pairs.iter().map(round).collect(), more_is_better }
    }

    #[test]
    fn a_ratio_above_one_is_better_whatever_is_measured() {
        assert_eq!(measured(&[(2.0, 6.0), (3.0, 6.0)], true).ratios(), [3.0, 2.0]);
        assert_eq!(measured(&[(6.0, 2.0)], false).ratios(), [3.0]);
    }

    #[test]
    fn a_line_has_medians_ratio_and_rounds() {
        let throughput = measured(&[(2.0, 6.0), (3.0, 6.0), (4.0, 4.0)], true);
        let line = Point { at: 64, throughput, latency: None }.line();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words, ["64", "3.000", "6.000", "2.00", "(1.00", "to", "3.00)", "near", "3"]);
    }

    #[test]
    fn every_curve_has_points_that_grow_and_a_name_of_its_own() {
        for (index, curve) in CURVES.iter().enumerate() {
            assert!(curve.points.is_sorted_by(|one, next| one < next), "{}", curve.name);
            assert!(CURVES[..index].iter().all(|other| other.name != curve.name));
        }
    }
}
