//! The command line.

use std::path::PathBuf;

use guard::Guard;

use crate::{
    Failure,
    growth::{CURVES, Curve},
    memory::Memory,
    rounds::Side,
    rows::{ROWS, Row},
    stage::Threads,
    waits::{self, Options as Waits, Shape},
};

pub const USAGE: &str = "\
usage: pools [--only ROW,..] [--messages N] [--rounds N] [--json FILE]
       pools instructions [ROW,..]
       pools guard [--record] [--file FILE]
       pools callgrind ROW baseline|greenroom N [current|two]
       pools growth [CURVE ..] [--rounds N] [--json FILE] [--plots FOLDER]
       pools waits [ROW ..] [--sides SIDE,..] [--rounds N] [--messages N] [--json FILE]
       pools serve
       pools rows

  --only       rows to run, by name (A4) or by workload (A); all unless said otherwise
  --messages   messages of a repetition; 5000000 unless said otherwise
  --rounds     rounds that count, after one that does not; 5 unless said otherwise
  --json       writes the raw figures to a file

  instructions counts instructions per message with valgrind, everything on one thread; A4,A256,A4-many,A256-many,B,D unless
               said otherwise
  guard        counts greenroom's instructions per message of A4, A256, A4-many, B-uniform, D and W64; fails where a row grew by more
               than 5 % over what bench/instructions.json (--file) records; --record writes that file
  callgrind    what `instructions` counts: runs one side of a row once with N messages (or calls), on the main thread alone
               (current, the default) or on a runtime of two threads
  growth       what throughput and latency do as one thing grows (producers, workers, keys, size, depth, pools) and the rest
               stays; all of them unless said otherwise, 3 rounds; --plots writes a curve of each as SVG
  waits        handlers that wait, beside channels, for_each_concurrent and a task for each message: throughput and processor
               time. A row is named by how its handlers wait (yield, reply, sleep, sometimes), workers, keys (1M, 1k), room (plenty:
               senders never wait) and threads (1t), as in sleep-64-1M-plenty-1t; `yield` is all whose name begins so; all of them
               unless said otherwise, 3 rounds of a million messages where handlers only give way. --sides runs some alone (pool,
               channels, concurrent, spawned), for a profile
  serve        takes part in the comparison with other systems: bench/PROTOCOL.md
";

/// Rows whose instructions are counted unless said otherwise.
const COUNTED: &str = "A4,A256,A4-many,A256-many,B,D";

/// Rows that the guard compares: each path that a message takes, and no path twice.
const GUARDED: [&str; 8] = ["A4", "A256", "A4-many", "B-uniform", "D1", "D64", "W64", "W64-keyed"];
/// What the file says of them.
const ABOUT: &str = "Instructions of Greenroom's side per message (per call in rows D), counted by callgrind with everything on one thread.";
/// What they are compared with, beside this package.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../instructions.json");

pub enum Command {
    Compare(Options),
    Callgrind {
        row: Row,
        side: Side,
        messages: u64,
        threads: Threads,
    },
    Instructions(Vec<Row>),
    Guard(Guard<'static>),
    Serve,
    Growth(Growth),
    Waits(Waits),
    /// Measures memory in a process of its own.
    Memory(Memory, Side),
    Rows,
    Help,
}

pub struct Options {
    pub rows: Vec<Row>,
    pub messages: u64,
    pub rounds: usize,
    pub json: Option<PathBuf>,
}

pub fn parse(args: &[String]) -> Result<Command, Failure> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["--help" | "-h" | "help"] => Ok(Command::Help),
        ["rows"] => Ok(Command::Rows),
        ["instructions"] => Ok(Command::Instructions(only(COUNTED)?)),
        ["instructions", rows] => Ok(Command::Instructions(only(rows)?)),
        ["guard", options @ ..] => Ok(Command::Guard(guarded().of(options)?)),
        ["callgrind", row, side, messages] => callgrind(row, side, messages, "current"),
        ["callgrind", row, side, messages, threads] => callgrind(row, side, messages, threads),
        ["memory", memory, of] => Ok(Command::Memory(memory.parse()?, side(of)?)),
        ["serve"] => Ok(Command::Serve),
        ["waits", options @ ..] => waits_options(options).map(Command::Waits),
        ["growth", options @ ..] => growth(options).map(Command::Growth),
        options => compare(options).map(Command::Compare),
    }
}

fn guarded() -> Guard<'static> {
    Guard {
        program: "pools",
        about: ABOUT,
        rows: GUARDED.to_vec(),
        file: PathBuf::from(RECORDED),
        record: false,
    }
}

/// The row of this name.
pub fn row(name: &str) -> Result<Row, Failure> {
    ROWS.into_iter().find(|known| known.name == name).ok_or_else(|| format!("no row {name}").into())
}

fn callgrind(row: &str, of: &str, messages: &str, threads: &str) -> Result<Command, Failure> {
    let row = self::row(row)?;
    let threads = match threads {
        "current" => Threads::Current,
        "two" => Threads::Two,
        other => return Err(format!("{other} is neither current nor two").into()),
    };
    Ok(Command::Callgrind { row, side: side(of)?, messages: messages.parse()?, threads })
}

fn side(text: &str) -> Result<Side, Failure> {
    match text {
        "baseline" => Ok(Side::Baseline),
        "greenroom" => Ok(Side::Greenroom),
        other => Err(format!("{other} is neither baseline nor greenroom").into()),
    }
}

fn compare(args: &[&str]) -> Result<Options, Failure> {
    let mut options = Options { rows: ROWS.to_vec(), messages: 5_000_000, rounds: 5, json: None };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{name} needs a value"));
        match *name {
            "--only" => options.rows = only(value()?)?,
            "--messages" => options.messages = at_least(value()?, 1_000)?,
            "--rounds" => options.rounds = usize::try_from(at_least(value()?, 1)?)?,
            "--json" => options.json = Some(PathBuf::from(value()?)),
            other => return Err(format!("unknown option {other}\n{USAGE}").into()),
        }
    }
    Ok(options)
}

/// What `growth` is asked for.
pub struct Growth {
    pub curves: Vec<&'static Curve>,
    pub rounds: usize,
    pub json: Option<PathBuf>,
    pub plots: Option<PathBuf>,
}

fn growth(args: &[&str]) -> Result<Growth, Failure> {
    let mut options = Growth { curves: Vec::new(), rounds: 3, json: None, plots: None };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match *arg {
            "--rounds" => options.rounds = usize::try_from(at_least(value()?, 1)?)?,
            "--json" => options.json = Some(PathBuf::from(value()?)),
            "--plots" => options.plots = Some(PathBuf::from(value()?)),
            option if option.starts_with('-') => {
                return Err(format!("unknown option {option}\n{USAGE}").into());
            }
            name => options.curves.push(curve(name)?),
        }
    }
    if options.curves.is_empty() {
        options.curves = CURVES.iter().collect();
    }
    Ok(options)
}

fn waits_options(args: &[&str]) -> Result<Waits, Failure> {
    let mut options = Waits {
        shapes: Vec::new(),
        sides: waits::Side::ALL.to_vec(),
        rounds: 3,
        messages: 1_000_000,
        json: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match *arg {
            "--rounds" => options.rounds = usize::try_from(at_least(value()?, 1)?)?,
            "--messages" => options.messages = at_least(value()?, 1_000)?,
            "--sides" => options.sides = sides(value()?)?,
            "--json" => options.json = Some(PathBuf::from(value()?)),
            option if option.starts_with('-') => {
                return Err(format!("unknown option {option}\n{USAGE}").into());
            }
            name => options.shapes.extend(shapes(name)?),
        }
    }
    if options.shapes.is_empty() {
        options.shapes = Shape::all();
    }
    Ok(options)
}

/// Sides of the rows of workload W, by name.
fn sides(names: &str) -> Result<Vec<waits::Side>, Failure> {
    let side = |name: &str| match name {
        "pool" => Ok(waits::Side::Pool),
        "channels" => Ok(waits::Side::Channels),
        "concurrent" => Ok(waits::Side::Concurrent),
        "spawned" => Ok(waits::Side::Spawned),
        other => {
            Err(format!("no side {other}; there are pool, channels, concurrent, spawned").into())
        }
    };
    names.split(',').map(side).collect()
}

/// The row of this name, or all whose names begin with it.
fn shapes(name: &str) -> Result<Vec<Shape>, Failure> {
    let all = Shape::all();
    let named = |wanted: &dyn Fn(&str) -> bool| -> Vec<Shape> {
        all.iter().copied().filter(|shape| wanted(&shape.to_string())).collect()
    };
    let exact = named(&|of| of == name);
    let rows = if exact.is_empty() { named(&|of| of.starts_with(name)) } else { exact };
    match rows.is_empty() {
        true => Err(format!("no row {name}; one is {}", all[0]).into()),
        false => Ok(rows),
    }
}

fn curve(name: &str) -> Result<&'static Curve, Failure> {
    let names = CURVES.each_ref().map(|curve| curve.name).join(", ");
    let known = CURVES.iter().find(|curve| curve.name == name);
    known.ok_or_else(|| format!("no curve {name}; there are {names}").into())
}

fn at_least(text: &str, least: u64) -> Result<u64, Failure> {
    match text.parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(format!("{text} must be a whole number from {least} up").into()),
    }
}

fn only(names: &str) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for name in names.split(',') {
        let known = rows.len();
        rows.extend(
            ROWS.iter()
                .filter(|row| row.name == name || (name.len() == 1 && row.name.starts_with(name))),
        );
        if rows.len() == known {
            return Err(format!("no row {name}; `pools rows` lists them").into());
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_the_guard_compares_is_one_of_the_table() {
        assert!(GUARDED.iter().all(|name| row(name).is_ok()));
    }

    #[test]
    fn the_committed_file_has_all_rows_of_the_guard() {
        guard::check(&guarded()).unwrap();
    }
}
