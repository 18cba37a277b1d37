//! A pool beside what people write by hand with tokio channels and tasks: unkeyed sends (A), keyed sends (B), calls (D) and
//! memory (E). Prints a table with medians and the ratio of each round; exits with 1 when a message was lost.

use std::{fs, process::ExitCode};

mod calls;
mod channels;
mod keyed;
mod keys;
mod measure;
mod memory;
mod message;
mod options;
mod report;
mod rows;
mod stage;
mod unkeyed;
mod work;

use self::{
    measure::Side,
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
        Command::Callgrind { row, side, messages, threads } => once(row, side, messages, threads)?,
        Command::Memory(memory, side) => println!("{}", memory::measure(memory, side)?),
        Command::Rows => {
            rows::ROWS.iter().for_each(|row| println!("{} ({})", row.name, row.unit()))
        }
        Command::Help => print!("{}", options::USAGE),
    }
    Ok(())
}

fn compare(options: &Options) -> Result<(), Failure> {
    let setting = report::setting(options);
    setting.iter().for_each(|(name, value)| println!("{name:<11} {value}"));
    println!("\n{}", report::heading());
    let calibration = Calibration::measure();
    let mut measured = Vec::new();
    for row in options.rows.iter().copied() {
        let mut run = row.prepare(options.messages, Threads::Two, calibration);
        let rounds = measure::rounds(options.rounds, &mut run);
        let rounds = rounds.map_err(|error| format!("{}: {error}", row.name))?;
        let row = Measured { row, rounds };
        println!("{}", row.line());
        measured.push(row);
    }
    if let Some(path) = &options.json {
        fs::write(path, report::json(&setting, &measured))?;
    }
    Ok(())
}

/// Without anything around it that would count instructions of its own.
fn once(row: Row, side: Side, messages: u64, threads: Threads) -> Result<(), Failure> {
    let figure = row.prepare(messages, threads, Calibration::measure())(side)?;
    println!("{} {figure:.3} {}", row.name, row.unit());
    Ok(())
}
