//! What a person reads: a table for each row, and what is left of a difference once handlers work.

use std::collections::BTreeMap;

use measure::{Distance, figure, median};

use crate::{
    limits::{limits, verdict},
    protocol::System,
    rounds::{Measured, Outcome, Series, Spread},
    rows::Row,
};

/// Cores used by others from which figures are called disturbed.
const DISTURBED_FROM: f64 = 0.25;

/// One row: greenroom first, then the others, the best of them first.
pub fn table(measured: &Measured, systems: &[&System]) -> String {
    let row = measured.row;
    let widths = Widths::of(measured, systems);
    let (name, unit, heading) = (row.name, row.unit(), heading(widths));
    let mut text = format!("{name}: {} ({unit})\n{heading}\n", row.what);
    text += &line(widths, systems[measured.own], &measured.own_outcomes(), "");
    text += &errors(measured.own_messages.as_ref().err(), &measured.own_outcomes());
    for series in ordered(measured) {
        text += &line(
            widths,
            systems[series.who],
            &series.outcomes(),
            &compared(measured, series, systems),
        );
        text += &errors(series.messages.as_ref().err(), &series.outcomes());
    }
    text
}

/// The best median first; without a figure last.
pub fn ordered(measured: &Measured) -> Vec<&Series> {
    let rank = |series: &&Series| {
        let figure = median(&values(&series.outcomes()));
        let better = if measured.row.more_is_better() { -figure } else { figure };
        if better.is_nan() { f64::INFINITY } else { better }
    };
    let mut series: Vec<_> = measured.series.iter().collect();
    series.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    series
}

pub fn values(outcomes: &[&Outcome]) -> Vec<f64> {
    outcomes.iter().filter_map(|outcome| Some(outcome.as_ref().ok()?.value)).collect()
}

/// Of the columns that differ from row to row.
#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    version: usize,
}

impl Widths {
    fn of(measured: &Measured, systems: &[&System]) -> Self {
        let who = measured.series.iter().map(|series| series.who).chain([measured.own]);
        let of = who.map(|who| (systems[who].name.len(), systems[who].version.len()));
        let (name, version) = of.fold((12, 7), |(a, b), (c, d)| (a.max(c), b.max(d)));
        Self { name, version }
    }
}

fn heading(Widths { name, version }: Widths) -> String {
    let line = format!(
        "{:<name$} {:<version$} {:<8} {:>9} {:>9} {:>9} {:>6}  {:<26} {:<30} {:<30} {:>6} {:>6}  {}",
        "system",
        "version",
        "language",
        "median",
        "min",
        "max",
        "others",
        "greenroom better by",
        "near: from, to, by (rounds)",
        "far",
        "floor",
        "target",
        "verdict"
    );
    line.trim_end().to_owned()
}

fn line(widths: Widths, system: &System, outcomes: &[&Outcome], compared: &str) -> String {
    let Widths { name, version } = widths;
    let figures = match Spread::of(&values(outcomes)) {
        Some(Spread { median, min, max }) => {
            format!("{:>9} {:>9} {:>9}", figure(median), figure(min), figure(max))
        }
        None => format!("{:>9} {:>9} {:>9}", "-", "-", "-"),
    };
    let others = others(outcomes);
    let line = format!(
        "{:<name$} {:<version$} {:<8} {figures} {others:>6.2}  {compared}",
        system.name, system.version, system.language
    );
    format!("{}\n", line.trim_end())
}

/// Cores that others used in the worst repetition.
fn others(outcomes: &[&Outcome]) -> f64 {
    let others = outcomes.iter().filter_map(|outcome| Some(outcome.as_ref().ok()?.others));
    others.fold(0.0, f64::max)
}

/// Ratios of all pairs, of near and of far ones, and the verdict.
fn compared(measured: &Measured, series: &Series, systems: &[&System]) -> String {
    let row = measured.row;
    let ratio = Spread::of(&series.compared(row, None).ratios)
        .map_or_else(String::new, |Spread { median, min, max }| {
            format!("{median:.2}x ({min:.2} to {max:.2})")
        });
    let (near, far) = match row.needs_own_process() {
        true => (String::new(), String::new()),
        false => (at(row, series, Distance::Near), at(row, series, Distance::Far)),
    };
    let judged = limits(row.name, &systems[series.who].name).map_or_else(String::new, |limits| {
        let verdict = verdict(limits, row, series);
        let floor = format!("{}x", limits.floor);
        let target = format!("{}x", limits.target);
        format!("{floor:>6} {target:>6}  {verdict}{}", doubts(measured, series))
    });
    format!("{ratio:<26} {near:<30} {far:<30} {judged}")
}

/// `10.2 to 70.1: 6.87x (4)`, from the other system to greenroom.
fn at(row: &Row, series: &Series, distance: Distance) -> String {
    let pairs = series.compared(row, Some(distance));
    match pairs.ratios.len() {
        0 => "-".to_owned(),
        count => {
            let (from, to) = (figure(median(&pairs.other)), figure(median(&pairs.own)));
            format!("{from} to {to}: {:.2}x ({count})", median(&pairs.ratios))
        }
    }
}

fn doubts(measured: &Measured, series: &Series) -> &'static str {
    let own: Vec<_> = series.pairs.iter().map(|pair| &pair.own).collect();
    let worst = others(&series.outcomes()).max(others(&own));
    match worst > DISTURBED_FROM && !measured.row.needs_own_process() {
        true => ", disturbed",
        false => "",
    }
}

/// Each error once, with how many repetitions had it.
fn errors(warm_up: Option<&String>, outcomes: &[&Outcome]) -> String {
    let all = outcomes.len();
    let mut counts = BTreeMap::new();
    for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        *counts.entry(error).or_insert(0) += 1;
    }
    let warm_up = warm_up.map(|error| format!("  ERROR when it warmed up: {error}\n"));
    let line = |(error, count)| format!("  ERROR in {count} of {all} repetitions: {error}\n");
    warm_up.into_iter().chain(counts.into_iter().map(line)).collect()
}

/// How many repetitions came to no figure.
pub fn failures(measured: &Measured) -> usize {
    let warm_ups = measured.series.iter().map(|series| &series.messages);
    let warm_ups = warm_ups.chain([&measured.own_messages]).filter(|messages| messages.is_err());
    let others = measured.series.iter().flat_map(Series::outcomes);
    let outcomes = measured.own_outcomes().into_iter().chain(others);
    warm_ups.count() + outcomes.filter(|outcome| outcome.is_err()).count()
}

/// For each system the ratio without work beside those with it, of rows whose names begin alike.
pub fn with_work(measured: &[Measured], workers: &str, systems: &[&System]) -> Option<String> {
    let is_meant = |measured: &&Measured| measured.row.name.split('-').next() == Some(workers);
    let rows: Vec<_> = measured.iter().filter(is_meant).collect();
    let first = rows.first().filter(|_| rows.len() > 1)?;
    let mut text =
        format!("greenroom better by, without and with work in each message\n{:<34}", "");
    text += &rows.iter().map(|of| format!(" {:>12}", of.row.name)).collect::<String>();
    for series in ordered(first) {
        text += &format!("\n{:<34}", systems[series.who].name);
        text +=
            &rows.iter().map(|of| format!(" {:>12}", ratio_of(of, series.who))).collect::<String>();
    }
    Some(text + "\n")
}

fn ratio_of(measured: &Measured, who: usize) -> String {
    let series = measured.series.iter().find(|series| series.who == who);
    let ratios = series.map(|series| series.compared(measured.row, None).ratios);
    let spread = ratios.and_then(|ratios| Spread::of(&ratios));
    spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.2}x", spread.median))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::tests::{far, lost, measured, near};

    fn systems() -> Vec<System> {
        let system = |name: &str| System {
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            language: "Rust".to_owned(),
            what: String::new(),
            rows: Vec::new(),
        };
        ["greenroom", "tokio mpsc", "slow", "gone"].map(system).to_vec()
    }

    fn rows() -> Vec<Measured> {
        let run = |row| {
            let own = vec![near(1.0), near(80.0), near(70.0), near(60.0), near(60.0), far(30.0)];
            let slow = vec![near(1.0), near(2.0), lost(), near(3.0)];
            let tokio = vec![near(1.0), near(10.0), far(10.0)];
            measured(row, vec![own, tokio, slow, vec![lost()]], 2).0
        };
        vec![run("A4"), run("A4-460ns")]
    }

    #[test]
    fn a_table_has_every_system_its_figures_and_its_errors() {
        let (systems, rows) = (systems(), rows());
        let text = table(&rows[0], &systems.iter().collect::<Vec<_>>());
        let lines: Vec<Vec<_>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2][..6], ["greenroom", "1.2.3", "Rust", "65.00", "60.00", "80.00"]);
        assert_eq!(lines[3][..7], ["tokio", "mpsc", "1.2.3", "Rust", "10.00", "10.00", "10.00"]);
        assert!(text.contains("7.00x (6.00 to 8.00)"), "{text}");
        assert!(text.contains("10.00 to 80.00: 8.00x (1)"), "{text}");
        assert!(lines[3].ends_with(&["5x", "7x", "target"]), "{text}");
        let lost = "lost: 9 of 10 messages were handled";
        assert!(text.contains(&format!("ERROR in 1 of 2 repetitions: {lost}")), "{text}");
        assert!(text.ends_with(&format!("ERROR when it warmed up: {lost}\n")), "{text}");
        assert_eq!(failures(&rows[0]), 2);
    }

    #[test]
    fn ratios_without_and_with_work_stand_beside_each_other() {
        let (systems, rows) = (systems(), rows());
        let systems: Vec<_> = systems.iter().collect();
        let text = with_work(&rows, "A4", &systems).unwrap();
        let line = text.lines().find(|line| line.starts_with("tokio")).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>(),
            ["tokio", "mpsc", "7.00x", "7.00x"]
        );
        assert!(with_work(&rows, "A256", &systems).is_none());
    }
}
