//! The table and the raw figures.

use std::fs;

use measure::{Distance, locked, machine, max, median, min, ping_pong};
use serde_json::{Value, json};

use crate::{
    options::Options,
    rounds::Round,
    rows::{Limits, Row},
};

/// Cores used by others from which a round is called disturbed. Runs of a tenth of a second
/// are known to some tenths.
const DISTURBED_FROM: f64 = 0.25;

/// A row that was run.
pub struct Measured {
    pub row: Row,
    pub rounds: Vec<Round>,
}

/// Machine, versions and settings, as lines of a name and a value.
pub fn setting(run: String) -> Vec<(&'static str, String)> {
    let versions = [locked("greenroom"), locked("tokio"), guard::COMPILER];
    let built = match cfg!(debug_assertions) {
        true => "with debug assertions: figures mean nothing",
        false => "optimised",
    };
    vec![
        ("machine", machine()),
        ("load", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()),
        ("cache line", format!("{:.0} ns round trip now (near: below 250)", ping_pong())),
        ("versions", format!("greenroom {}, tokio {}, {}", versions[0], versions[1], versions[2])),
        ("built", built.to_owned()),
        ("allocator", "the system's, on both sides".to_owned()),
        ("run", run),
    ]
}

/// What one run of the table is.
pub fn run(options: &Options) -> String {
    format!(
        "{} messages of 48 bytes (half with 460 ns of work, an eighth with more, a tenth and a fifth as calls, a fifth for K, a 25th at 20,000/s for C), 2 producers, a runtime of 2 threads, {} rounds after a warm-up, baseline and greenroom in turn",
        options.messages, options.rounds
    )
}

pub fn heading() -> String {
    format!(
        "{:<12} {:>8} {:>10} {:>10}  {:>22}  {:<38} {:>6} {:>7} {:>7}  {}",
        "row",
        "unit",
        "baseline",
        "greenroom",
        "ratio (min to max)",
        "by distance of the cores (rounds)",
        "others",
        "floor",
        "target",
        "verdict"
    )
}

impl Measured {
    fn values(&self, of: impl Fn(&Round) -> f64) -> Vec<f64> {
        self.rounds.iter().map(of).collect()
    }

    fn baseline(&self) -> f64 {
        median(&self.values(|round| round.baseline.value))
    }

    fn greenroom(&self) -> f64 {
        median(&self.values(|round| round.greenroom.value))
    }

    fn ratios(&self, wanted: impl Fn(Distance) -> bool) -> Vec<f64> {
        let rounds = self.rounds.iter().filter(|round| wanted(round.distance()));
        rounds.map(|round| self.row.ratio(round.baseline.value, round.greenroom.value)).collect()
    }

    /// Figures and ratio by distance: `near 5.61 to 39.9: 7.11 (4), far 3.02 to 9.1: 3.01 (1)`.
    fn by_distance(&self) -> String {
        let part = |distance: Distance| {
            let rounds = self.rounds.iter().filter(|round| round.distance() == distance).cloned();
            let rounds = Self { row: self.row, rounds: rounds.collect() };
            let (count, name) = (rounds.rounds.len(), distance.name());
            let (from, to) = (rounds.baseline(), rounds.greenroom());
            let ratio = median(&rounds.ratios(|_| true));
            (count > 0).then(|| format!("{name} {from:.2} to {to:.2}: {ratio:.2} ({count})"))
        };
        let parts = [Distance::Near, Distance::Far, Distance::Mixed].into_iter().filter_map(part);
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Floor, target, and how the figure stands to them. Near rounds are
    /// judged where there are any.
    fn verdict(&self) -> (String, String, &'static str) {
        let near = self.ratios(|distance| distance == Distance::Near);
        let ratios = if near.is_empty() { self.ratios(|_| true) } else { near };
        let (floor, target, reached) = match self.row.limits {
            Limits::None => return (String::new(), String::new(), "not judged"),
            Limits::Ratio { floor, target } => {
                let ratio = median(&ratios);
                (format!("{floor}x"), format!("{target}x"), (ratio >= floor, ratio >= target))
            }
            Limits::AtMost { floor, target } => {
                let own = self.greenroom();
                (format!("<={floor}"), format!("<={target}"), (own <= floor, own <= target))
            }
        };
        let verdict = match reached {
            (_, true) => "target",
            (true, false) => "floor",
            (false, false) => "BELOW FLOOR",
        };
        (floor, target, verdict)
    }

    /// Cores that others used in the worst round.
    fn others(&self) -> f64 {
        self.values(|round| round.others()).into_iter().fold(0.0, f64::max)
    }

    /// Why the verdict says little.
    fn doubts(&self) -> String {
        let judged_by_ratio = matches!(self.row.limits, Limits::Ratio { .. });
        let near = self.rounds.iter().any(|round| round.distance() == Distance::Near);
        let far = if judged_by_ratio && !near { ", no near round" } else { "" };
        let timed = !matches!(self.row.limits, Limits::AtMost { .. });
        let disturbed = if timed && self.others() > DISTURBED_FROM { ", disturbed" } else { "" };
        format!("{far}{disturbed}")
    }

    /// What is judged, with its range: ratios, or greenroom's own figures.
    fn judged(&self) -> String {
        let values = match self.row.limits {
            Limits::AtMost { .. } => self.values(|round| round.greenroom.value),
            Limits::Ratio { .. } | Limits::None => self.ratios(|_| true),
        };
        let (min, max) = (min(&values), max(&values));
        match self.row.limits {
            Limits::AtMost { .. } => format!("own ({min:.2} to {max:.2})"),
            Limits::Ratio { .. } | Limits::None => {
                format!("{:.2} ({min:.2} to {max:.2})", median(&values))
            }
        }
    }

    pub fn line(&self) -> String {
        let (floor, target, verdict) = self.verdict();
        let by_distance = match self.row.limits {
            Limits::AtMost { .. } => String::new(),
            Limits::Ratio { .. } | Limits::None => self.by_distance(),
        };
        format!(
            "{:<12} {:>8} {:>10.3} {:>10.3}  {:>22}  {by_distance:<38} {:>6.2} {floor:>7} {target:>7}  {verdict}{}",
            self.row.name,
            self.row.unit(),
            self.baseline(),
            self.greenroom(),
            self.judged(),
            self.others(),
            self.doubts()
        )
    }

    /// Medians of what else was measured: `p50 61.2 to 58.1, all p99 20113 to 20094`.
    pub fn also(&self) -> Option<String> {
        let names = self.rounds.first()?.greenroom.also.iter().map(|(name, _)| *name);
        let part = |(place, name): (usize, &str)| {
            let from = median(&self.values(|round| round.baseline.also[place].1));
            let to = median(&self.values(|round| round.greenroom.also[place].1));
            format!("{name} {from:.1} to {to:.1}")
        };
        let parts: Vec<_> = names.enumerate().map(part).collect();
        (!parts.is_empty()).then(|| format!("{:<12} {}", "", parts.join(", ")))
    }

    fn json(&self) -> Value {
        json!({
            "row": self.row.name,
            "unit": self.row.unit(),
            "baseline_median": self.baseline(),
            "greenroom_median": self.greenroom(),
            "ratios": self.ratios(|_| true),
            "verdict": self.verdict().2,
            "rounds": self.rounds.iter().map(|round| round.json()).collect::<Vec<_>>(),
        })
    }
}

/// Everything, for other programs to read.
pub fn json(setting: &[(&'static str, String)], measured: &[Measured], failed: &[&str]) -> String {
    let setting: serde_json::Map<_, _> =
        setting.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let rows: Vec<_> = measured.iter().map(Measured::json).collect();
    format!("{:#}\n", json!({ "setting": setting, "rows": rows, "failed": failed }))
}
