//! A pool beside what people write by hand with tokio channels and tasks: unkeyed sends (A), keyed
//! sends (B), latency where a few messages sleep (C), calls (D) and memory (E); how all of it grows
//! (H). Prints a table with medians and the ratio of each round; exits with 1 when a message was
//! lost.
//!
//! `cargo run --profile measure --manifest-path bench/Cargo.toml -p pools -- --help`

use std::{fs, process::ExitCode};

mod arrivals;
mod calls;
mod channels;
mod growth;
mod instructions;
mod keyed;
mod keys;
mod memory;
mod message;
mod options;
mod report;
mod rounds;
mod rows;
mod serve;
mod several;
mod sizes;
mod sleepers;
mod stage;
mod unkeyed;
mod waits;
mod work;

use self::{
    options::{Command, Options},
    report::Measured,
    rows::Row,
    stage::Threads,
    work::Calibration,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match options::parse(&args).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Compare(options) => compare(&options)?,
        Command::Callgrind { row, side, messages, threads } => {
            instructions::run_once(row, side, messages, threads)?
        }
        Command::Instructions(rows) => count(rows)?,
        Command::Guard(guard) => guard::run(&guard, &|row| {
            instructions::per_message(options::row(row)?, rounds::Side::Greenroom)
        })?,
        Command::Serve => serve::serve()?,
        Command::Growth(options) => growth::grow(&options)?,
        Command::Waits(options) => waits::run(&options)?,
        Command::Memory(memory, side) => println!("{}", memory::measure(memory, side)?),
        Command::Rows => {
            rows::ROWS.iter().for_each(|row| println!("{} ({})", row.name, row.unit()))
        }
        Command::Help => print!("{}", options::USAGE),
    }
    Ok(())
}

/// Every row is run, also after one that lost messages.
fn compare(options: &Options) -> Result<(), Failure> {
    let setting = report::setting(report::run(options));
    setting.iter().for_each(|(name, value)| println!("{name:<11} {value}"));
    println!("\n{}", report::heading());
    let calibration = Calibration::measure();
    let (mut measured, mut failed) = (Vec::new(), Vec::new());
    for row in options.rows.iter().copied() {
        match measure_row(row, options, calibration) {
            Ok(row) => {
                println!("{}", row.line());
                row.also().iter().for_each(|line| println!("{line}"));
                measured.push(row);
            }
            Err(error) => {
                println!("{:<12} FAILED: {error}", row.name);
                failed.push(row.name);
            }
        }
    }
    if let Some(path) = &options.json {
        fs::write(path, report::json(&setting, &measured, &failed))?;
    }
    match failed.as_slice() {
        [] => Ok(()),
        failed => Err(format!("failed: {}", failed.join(", ")).into()),
    }
}

fn measure_row(row: Row, options: &Options, calibration: Calibration) -> Result<Measured, Failure> {
    let mut run = row.prepare(row.scaled(options.messages), Threads::Two, Some(calibration))?;
    let rounds = rounds::rounds(row.needs_warm_up(), options.rounds, &mut run)?;
    Ok(Measured { row, rounds })
}

fn count(rows: Vec<Row>) -> Result<(), Failure> {
    println!("instructions per message\n\n{}", instructions::heading());
    rows.into_iter().try_for_each(|row| {
        println!("{}", instructions::line(row)?);
        Ok(())
    })
}
