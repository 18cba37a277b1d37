//! All sides in turn, and what each adds.

use std::process::Command;

use measure::{Distance, Watch, machine, max, median, min, ping_pong};

use crate::{
    Failure, USAGE,
    pace::{Pace, WINDOW},
    run::{self, Run},
    side::Side,
};

struct Options {
    sides: Vec<Side>,
    pace: Pace,
    rounds: usize,
}

impl Options {
    fn of(args: &[&str]) -> Result<Self, String> {
        let pace = Pace { rate: 100_000, workers: 1_024, windows: 5 };
        let mut options = Self { sides: vec![Side::Off], pace, rounds: 5 };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let wrong = || format!("unknown: {arg}\n{USAGE}");
            let mut number = || {
                let value = args.next().and_then(|value| value.parse::<u64>().ok());
                value.filter(|value| *value > 0).ok_or_else(wrong)
            };
            match *arg {
                "--windows" => options.pace.windows = number()?.try_into().map_err(|_| wrong())?,
                "--rounds" => options.rounds = number()? as usize,
                "--rate" => options.pace.rate = number()?,
                "--workers" => options.pace.workers = number()? as usize,
                name => {
                    let side = Side::ALL.into_iter().find(|side| side.name() == name);
                    options.sides.push(side.ok_or_else(wrong)?);
                }
            }
        }
        if options.sides.len() == 1 {
            options.sides = Side::ALL.to_vec();
        }
        options.sides.dedup();
        Ok(options)
    }
}

type Runs = Vec<(Side, Vec<Run>)>;

pub fn run(binary: &str, args: &[&str]) -> Result<(), Failure> {
    let Options { sides, pace, rounds } = Options::of(args)?;
    let version = Command::new(binary).arg("--version").output()?.stdout;
    println!("{}\n{}", String::from_utf8_lossy(&version).trim(), machine());
    println!(
        "{} events per second, {} workers, {} windows of {} s, {rounds} rounds",
        pace.rate,
        pace.workers,
        pace.windows,
        WINDOW.as_secs()
    );
    let mut runs: Runs = sides.into_iter().map(|side| (side, Vec::new())).collect();
    for round in 1..=rounds {
        // Each round begins with another side, so that none has the same neighbour always.
        let count = runs.len();
        runs.rotate_left(usize::from(round > 1) % count);
        for (side, runs) in &mut runs {
            let (watch, before) = (Watch::start(), ping_pong());
            let run = run::run(binary, *side, pace)?;
            let distance = Distance::of(&[before, ping_pong()]).name();
            eprintln!(
                "round {round}: {}: {:.3} µs of an event, cores {distance}, others {:.2} cores",
                side.name(),
                median(&run.alone()),
                watch.cores()
            );
            runs.push(run);
        }
    }
    print(&runs);
    Ok(())
}

fn print(runs: &Runs) {
    let each = |of: &[Run]| of.iter().map(|run| median(&run.alone())).collect::<Vec<f64>>();
    let off = runs.iter().find(|(side, _)| *side == Side::Off);
    let off = off.map(|(_, runs)| each(runs)).unwrap_or_default();
    println!("\nmedian of each process {:>16}", "µs of an event");
    for side in Side::ALL {
        let Some((_, runs)) = runs.iter().find(|(of, _)| *of == side) else { continue };
        let each = each(runs);
        row(side.name(), &each);
        if side != Side::Off && !off.is_empty() {
            let ratios: Vec<f64> = each.iter().zip(&off).map(|(each, off)| each / off).collect();
            row("  of off, same round", &ratios);
        }
        if side == Side::Watched {
            of_watched(runs);
        }
    }
}

fn of_watched(runs: &[Run]) {
    let windows = runs.iter().flat_map(|run| &run.windows);
    let ratios = windows.filter_map(|window| Some(window.watched? / window.alone));
    row("  watched / alone, same process", &ratios.collect::<Vec<f64>>());
    let scrapes = runs.iter().flat_map(|run| &run.scrapes).map(|seconds| seconds * 1e3);
    row("  ms of a scrape", &scrapes.collect::<Vec<f64>>());
}

fn row(name: &str, of: &[f64]) {
    println!("{name:<32} {:>7.3}   {:.3} to {:.3} ({})", median(of), min(of), max(of), of.len());
}
