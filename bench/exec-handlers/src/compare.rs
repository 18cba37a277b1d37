//! All sides in turn, and what their figures come to.

use std::{process::ExitCode, time::Instant};

use measure::{Options, Watch, machine, max, median, min, processor_time};

use crate::{
    Failure, IN_FLIGHT, PROCESSES, USAGE, engine,
    event::{event, line},
    piped,
    worker::IN_PYTHON,
};

const USUAL: Options = Options { events: 20_000, rounds: 5 };

/// Who hands events to the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Piped { in_flight: usize },
    Engine { in_flight: usize, is_ordered: bool },
}

impl Side {
    const ALL: [Self; 6] = [
        Self::Piped { in_flight: 1 },
        Self::Engine { in_flight: 1, is_ordered: false },
        Self::Engine { in_flight: 1, is_ordered: true },
        Self::Piped { in_flight: IN_FLIGHT },
        Self::Engine { in_flight: IN_FLIGHT, is_ordered: false },
        Self::Engine { in_flight: IN_FLIGHT, is_ordered: true },
    ];

    fn name(self) -> String {
        match self {
            Self::Piped { in_flight } => format!("a loop, {in_flight} in flight"),
            Self::Engine { in_flight, is_ordered: false } => format!("any order, {in_flight}"),
            Self::Engine { in_flight, is_ordered: true } => format!("by subject, {in_flight}"),
        }
    }
}

/// What one side came to.
#[derive(Debug, Clone, Copy)]
struct Run {
    rate: f64,
    /// Processor time of each event, in microseconds, the workers' not counted.
    each: f64,
}

pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let options = Options::of(args, USUAL).map_err(|wrong| format!("{wrong}\n{USAGE}"))?;
    let Options { events, rounds } = options;
    let own = std::env::current_exe()?.to_string_lossy().into_owned();
    let commands = [
        ("native workers", vec![own, "worker".to_owned()]),
        ("Python workers", ["python3", "-c", IN_PYTHON].map(str::to_owned).to_vec()),
    ];
    println!("greenroom {}, {}", env!("CARGO_PKG_VERSION"), machine());
    println!("{events} events of 1 KiB, {PROCESSES} processes, {rounds} rounds");
    let (watch, mut runs) = (Watch::start(), vec![Vec::new(); commands.len()]);
    for round in 1..=rounds {
        for ((_, command), runs) in commands.iter().zip(&mut runs) {
            let mut turn = Vec::new();
            for side in Side::ALL {
                turn.push(measured(side, command, events)?);
            }
            runs.push(turn);
        }
        eprintln!("round {round} of {rounds}");
    }
    println!("others used {:.2} cores", watch.cores());
    for ((name, _), rounds) in commands.iter().zip(&runs) {
        print(name, rounds);
    }
    Ok(ExitCode::SUCCESS)
}

/// What it hands out is made before.
fn measured(side: Side, command: &[String], count: u64) -> Result<Run, Failure> {
    let lines = (0..count).map(line).collect::<Result<Vec<_>, _>>()?;
    let events = (0..count).map(event).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (start, before) = (Instant::now(), processor_time());
    let done = match side {
        Side::Piped { in_flight } => piped::run(command, &lines, in_flight),
        Side::Engine { in_flight, is_ordered } => {
            runtime.block_on(engine::run(command, events, in_flight, is_ordered))
        }
    }?;
    let (seconds, processor) = (start.elapsed().as_secs_f64(), processor_time() - before);
    if done != count {
        return Err(format!("{}: {done} of {count} events came back", side.name()).into());
    }
    Ok(Run { rate: count as f64 / seconds, each: processor * 1e6 / count as f64 })
}

fn print(name: &str, rounds: &[Vec<Run>]) {
    println!("\n{:<24} {:>10}   {:<18} {:>9}   ratio", name, "per second", "range", "cpu, µs");
    for (place, side) in Side::ALL.into_iter().enumerate() {
        let of = |figure: fn(&Run) -> f64| -> Vec<f64> {
            rounds.iter().map(|round| figure(&round[place])).collect()
        };
        let (rates, each) = (of(|run| run.rate), of(|run| run.each));
        let ratios: Vec<f64> =
            rounds.iter().map(|round| round[place].rate / round[0].rate).collect();
        let range = format!("{:.0} to {:.0}", min(&rates), max(&rates));
        println!(
            "{:<24} {:>10.0}   {range:<18} {:>9.1}   {:.3}, {:.3} to {:.3}",
            side.name(),
            median(&rates),
            median(&each),
            median(&ratios),
            min(&ratios),
            max(&ratios),
        );
    }
}
