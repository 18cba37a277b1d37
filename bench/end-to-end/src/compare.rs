//! All sides in turn, and what their figures come to.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use measure::{Options, machine, max, median, min};

use crate::{
    Failure, USAGE,
    file::Lines,
    random::Random,
    sides::{Run, Side, measured},
};

/// The bound on the engine's peak memory.
const MEMORY_BOUND: u64 = 150 << 20;
/// How much more it may take for ten times the input: less than 14 bytes for each further event.
const GROWTH_BOUND: u64 = 24 << 20;
/// Runs of ten times the input, of which the one that takes least is judged. The peak is the
/// highest point of a level that goes up and down with the moment at which the threads meet: 57 to
/// 80 MiB in seven runs of 200,000 events, 65 to 93 in as many of 2,000,000. What grows with the
/// input grows in each.
const LARGE_RUNS: u64 = 3;
/// An event costs less without files, and a message less than that: so many times as many take as
/// long.
const FROM_MEMORY: u64 = 5;
const MESSAGES: u64 = 25;

const FLOOR: Side = Side::Floor(Lines::Events);
const FLOOR_RAW: Side = Side::Floor(Lines::Payloads);
const ANY_ORDER: Side = Side::Engine { lines: Lines::Events, is_ordered: false };
const ORDERED: Side = Side::Engine { lines: Lines::Events, is_ordered: true };
const RAW: Side = Side::Engine { lines: Lines::Payloads, is_ordered: false };

/// The rows of the table, in the order in which they are run in each round.
const ROWS: [(Side, &str); 9] = [
    (FLOOR, "floor: read, parse, write"),
    (ANY_ORDER, "engine, file to file, any order"),
    (ORDERED, "engine, file to file, by subject"),
    (FLOOR_RAW, "floor of raw payloads: read, write"),
    (RAW, "engine, raw payloads, any order"),
    (Side::Parse, "floor: read, parse"),
    (Side::Nowhere, "engine, file to nowhere, any order"),
    (Side::Pool, "bare pool, a million keys"),
    (Side::Memory, "engine, memory to nowhere, ordered"),
];

/// What is compared, and what is aimed at.
const RATIOS: [(Side, Side, &str, &str); 5] = [
    (ANY_ORDER, FLOOR, "any order / floor", "at least 0.75, aim 1"),
    (ORDERED, FLOOR, "by subject / floor", "at least 0.75, aim 1"),
    (RAW, FLOOR_RAW, "raw payloads / their floor", "at least 0.75, aim 1"),
    (Side::Nowhere, Side::Parse, "to nowhere / read and parse", "above 1 with a core to spare"),
    (Side::Memory, Side::Pool, "from memory / bare pool", "at least 0.067, aim 0.125"),
];

const USUAL: Options = Options { events: 200_000, rounds: 5 };

pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let options = Options::of(args, USUAL).map_err(|wrong| format!("{wrong}\n{USAGE}"))?;
    let Options { events, rounds } = options;
    let scratch = Scratch::new()?;
    let (small, large) = (scratch.0.join("small.ndjson"), scratch.0.join("large.ndjson"));
    eprintln!("writing {events} and {} events", events * 10);
    write_events(&small, events)?;
    write_events(&large, events * 10)?;
    let bytes = std::fs::metadata(&small)?.len();
    println!("greenroom {}, {}", env!("CARGO_PKG_VERSION"), machine());
    println!("{events} events of {} bytes each, {rounds} rounds\n", bytes / events);
    measured(FLOOR, &small, events)?;
    let mut runs: Vec<(Side, Vec<Run>)> = ROWS.map(|(side, _)| (side, Vec::new())).to_vec();
    for round in 1..=rounds {
        for (side, runs) in &mut runs {
            runs.push(measured(*side, &small, of_side(*side, events))?);
        }
        eprintln!("round {round} of {rounds}");
    }
    print(&runs);
    let large = (0..LARGE_RUNS).map(|_| measured(ORDERED, &large, 10 * events));
    let large: Vec<Run> = large.collect::<Result<_, _>>()?;
    Ok(judge(&runs, &large, events))
}

/// How many events or messages a side is to do.
fn of_side(side: Side, events: u64) -> u64 {
    match side {
        Side::Floor(_) | Side::Engine { .. } | Side::Parse | Side::Nowhere => events,
        Side::Memory => events * FROM_MEMORY,
        Side::Pool => events * MESSAGES,
    }
}

fn of(runs: &[(Side, Vec<Run>)], side: Side) -> &[Run] {
    runs.iter().find(|(of, _)| *of == side).map_or(&[], |(_, runs)| runs)
}

fn print(runs: &[(Side, Vec<Run>)]) {
    println!("{:<36} {:>12}   range", "", "per second");
    for (side, name) in ROWS {
        let rates: Vec<f64> = of(runs, side).iter().map(|run| run.rate()).collect();
        println!("{name:<36} {:>12.0}   {:.0} to {:.0}", median(&rates), min(&rates), max(&rates));
    }
    println!();
    for (one, other, name, aim) in RATIOS {
        let pairs = of(runs, one).iter().zip(of(runs, other));
        let ratios: Vec<f64> = pairs.map(|(one, other)| one.rate() / other.rate()).collect();
        let (low, high) = (min(&ratios), max(&ratios));
        println!("{name:<36} {:>12.3}   {low:.3} to {high:.3}   ({aim})", median(&ratios));
    }
}

/// Nothing may be lost, and memory is bounded.
fn judge(runs: &[(Side, Vec<Run>)], large: &[Run], events: u64) -> ExitCode {
    let memory = of(runs, ORDERED).iter().map(|run| run.memory).max().unwrap_or(0);
    let least = large.iter().map(|run| run.memory).min().unwrap_or(u64::MAX);
    let most = large.iter().map(|run| run.memory).max().unwrap_or(u64::MAX);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "\npeak memory {:.1} MiB; with ten times the events {:.1} MiB",
        mib(memory),
        mib(least)
    );
    let is_whole = |(side, runs): &(Side, Vec<Run>)| {
        runs.iter().all(|run| run.events == of_side(*side, events))
    };
    let is_whole = runs.iter().all(is_whole) && large.iter().all(|run| run.events == 10 * events);
    let is_bounded = memory.max(most) <= MEMORY_BOUND && least <= memory + GROWTH_BOUND;
    if is_whole && is_bounded {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: events were lost, or memory is above its bound");
    ExitCode::FAILURE
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let name = format!("greenroom-end-to-end-{}", std::process::id());
        let scratch = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&scratch.0)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Events like those of a repository's history: a path as the subject, skewed, some 340 bytes a
/// line.
pub fn write_events(path: &Path, count: u64) -> Result<(), Failure> {
    let mut writer = BufWriter::new(File::create(path)?);
    let mut random = Random::new();
    for number in 0..count {
        let random = random.next();
        // The square of an even number is skewed to small ones: some keys are hot, most are cold.
        let even = (random >> 40) as f64 / (1_u64 << 24) as f64;
        let key = (even * even * 24_000.0) as u32;
        writeln!(
            writer,
            r#"{{"specversion":"1.0","id":"{number:08}","source":"/repository/main","type":"repo.file.modified","subject":"module-{}/src/main/scala/package/File{key}.scala","time":"2026-01-01T00:00:00Z","datacontenttype":"application/json","data":{{"commit":"{random:016x}{random:016x}","author":"a{:06x}","revision":{number},"mode":"100644","size":{}}}}}"#,
            key % 40,
            random & 0xFF_FFFF,
            random % 100_000,
        )?;
    }
    writer.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_of_a_ratio_is_a_row() {
        let is_row = |side| ROWS.iter().any(|(row, _)| *row == side);
        assert!(RATIOS.iter().all(|(one, other, ..)| is_row(*one) && is_row(*other)));
    }
}
