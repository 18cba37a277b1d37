//! All sides in turn, and what their figures come to.

use std::{process::ExitCode, time::Duration};

use measure::{Distance, Watch, machine, max, median, min, ping_pong};
use rdkafka::util::get_rdkafka_version;

use crate::{
    Failure, USAGE,
    broker::{Broker, PARTITIONS, unique},
    made::VALUE,
    peer::Peer,
    row::{ROWS, Row},
    run::Run,
    side::{Side, Task, measured},
};

/// Between two commits of every side: the engine's own pace.
const COMMITS: Duration = Duration::from_secs(1);

/// What is compared within each round, and what is aimed at.
const RATIOS: [(Side, Side, &str); 6] = [
    (Side::Copy, Side::Poll, "what it costs to make events"),
    (Side::Commit, Side::Copy, "and to commit"),
    (Side::Greenroom, Side::Commit, "and all else that the engine does: at least 0.85, aim 0.9"),
    (Side::Greenroom, Side::Poll, "all of it"),
    (Side::Greenroom, Side::Peer, "at least 3, aim 5, of no-ops; at least 1 of 10 ms"),
    (Side::Peer, Side::Commit, ""),
];

struct Options<'a> {
    rows: Vec<&'a Row>,
    events: Option<u64>,
    rounds: usize,
}

impl Options<'_> {
    fn of(args: &[&str]) -> Result<Self, Failure> {
        let mut options = Self { rows: Vec::new(), events: None, rounds: 5 };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || args.next().and_then(|value| value.parse::<u64>().ok());
            let wrong = || format!("unknown: {arg}\n{USAGE}");
            match *arg {
                "--events" => options.events = Some(number().ok_or_else(wrong)?.max(1)),
                "--rounds" => options.rounds = number().ok_or_else(wrong)?.max(1) as usize,
                name => {
                    let row = ROWS.iter().find(|row| row.name == name);
                    options.rows.push(row.ok_or_else(wrong)?);
                }
            }
        }
        if options.rows.is_empty() {
            options.rows = ROWS.iter().collect();
        }
        Ok(options)
    }
}

pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let options = Options::of(args)?;
    let peer = Peer::built()?;
    let broker = Broker::open()?;
    println!("greenroom {}, {}", env!("CARGO_PKG_VERSION"), machine());
    print!("librdkafka {}", get_rdkafka_version().1);
    match &peer {
        Some(peer) => println!(", parallel-consumer 0.5.3.3 on {}", peer.version),
        None => println!(", no parallel-consumer"),
    }
    println!(
        "{PARTITIONS} partitions, values of {VALUE} bytes, a commit each second, {} rounds; the broker \
         is on the same machine",
        options.rounds
    );
    let mut is_whole = true;
    for row in &options.rows {
        is_whole &= of_row(row, &broker, peer.as_ref(), &options)?;
    }
    if is_whole {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("error: events were lost");
    Ok(ExitCode::FAILURE)
}

type Runs = Vec<(Side, Vec<Run>)>;

/// Whether each side has handled each event.
fn of_row(
    row: &Row,
    broker: &Broker,
    peer: Option<&Peer>,
    options: &Options<'_>,
) -> Result<bool, Failure> {
    let events = row.events(options.events);
    println!("\n{}: {}, {events} events", row.name, row.about);
    let (topic, busiest) = row.publish(broker, events)?;
    let is_there = |side: &&Side| **side != Side::Peer || peer.is_some();
    let mut runs: Runs =
        row.sides.iter().filter(is_there).map(|side| (*side, Vec::new())).collect();
    for round in 1..=options.rounds {
        // Each round begins with another side, so that none has the same neighbour always.
        let count = runs.len();
        runs.rotate_left(usize::from(round > 1) % count);
        for (side, runs) in &mut runs {
            let task = Task {
                broker: broker.address.clone(),
                topic: topic.clone(),
                group: unique(side.name()),
                events,
                warm_up: row.warm_up.min(events),
                workers: row.workers,
                work: row.work,
                commits: COMMITS,
            };
            let (watch, before) = (Watch::start(), ping_pong());
            let run = measured(*side, &task, peer)?;
            let distance = Distance::of(&[before, ping_pong()]).name();
            let rate = run.rate();
            eprintln!(
                "round {round}: {}: {rate:.0} per second, cores {distance}, broker and others {:.2} cores",
                side.name(),
                watch.cores()
            );
            runs.push(run);
        }
    }
    print(row, busiest, &runs);
    Ok(runs.iter().all(|(_, runs)| runs.iter().all(|run| run.events >= events)))
}

fn of(runs: &Runs, side: Side) -> &[Run] {
    runs.iter().find(|(of, _)| *of == side).map_or(&[], |(_, runs)| runs)
}

fn print(row: &Row, busiest: u64, runs: &Runs) {
    println!("{:<32} {:>10}   {:<20} {:>8}", "", "per second", "range", "cpu, µs");
    for side in row.sides {
        let runs = of(runs, *side);
        if runs.is_empty() {
            continue;
        }
        let (rates, each): (Vec<f64>, Vec<f64>) =
            runs.iter().map(|run| (run.rate(), run.each())).unzip();
        let range = format!("{:.0} to {:.0}", min(&rates), max(&rates));
        println!(
            "{:<32} {:>10.0}   {range:<20} {:>8.2}",
            side.about(),
            median(&rates),
            median(&each)
        );
    }
    if !row.work.is_zero() {
        of_bounds(runs, row.work.as_secs_f64() * busiest as f64);
    }
    for (one, other, what) in RATIOS {
        let pairs = of(runs, one).iter().zip(of(runs, other));
        let ratios: Vec<f64> = pairs.map(|(one, other)| one.rate() / other.rate()).collect();
        if !ratios.is_empty() {
            ratio(&format!("{} / {}", one.name(), other.name()), &ratios, what);
        }
    }
}

/// Of the time that the busiest key takes at least: with handlers as long as they should be, and
/// with those that the side had, whose timer may be a millisecond late.
fn of_bounds(runs: &Runs, nominal: f64) {
    for (side, runs) in runs {
        let of_nominal: Vec<f64> = runs.iter().map(|run| nominal / run.seconds).collect();
        ratio(&format!("{} / key-serial bound", side.name()), &of_nominal, "");
        let of_own: Vec<f64> = runs.iter().map(|run| run.of_bound()).collect();
        ratio("  with its own timer", &of_own, "greenroom: at least 0.95, aim 0.97");
    }
}

fn ratio(name: &str, ratios: &[f64], what: &str) {
    let (middle, low, high) = (median(ratios), min(ratios), max(ratios));
    println!("{name:<40} {middle:>7.3}   {low:.3} to {high:.3}   {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_by_their_names() {
        let options = Options::of(&["10ms", "--rounds", "2"]).expect("it is understood");
        assert_eq!((options.rows[0].name, options.rows.len(), options.rounds), ("10ms", 1, 2));
        assert_eq!(Options::of(&[]).expect("it is understood").rows.len(), ROWS.len());
        assert!(Options::of(&["11ms"]).is_err() && Options::of(&["--events"]).is_err());
    }
}
