//! One side, in a process of its own.

use std::{
    future::Future,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use crate::{
    Failure,
    file::{self, Lines},
    memory, pool,
};

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// One thread that reads, makes events and writes.
    Floor(Lines),
    /// The engine between the same files.
    Engine { lines: Lines, is_ordered: bool },
    /// One thread that reads and makes events.
    Parse,
    /// The engine from a file to nowhere.
    Nowhere,
    /// The engine from memory to nowhere.
    Memory,
    /// A pool alone.
    Pool,
}

const SIDES: [(&str, Side); 9] = [
    ("floor", Side::Floor(Lines::Events)),
    ("floor-raw", Side::Floor(Lines::Payloads)),
    ("engine-any-order", Side::Engine { lines: Lines::Events, is_ordered: false }),
    ("engine-ordered", Side::Engine { lines: Lines::Events, is_ordered: true }),
    ("engine-raw", Side::Engine { lines: Lines::Payloads, is_ordered: false }),
    ("parse", Side::Parse),
    ("engine-nowhere", Side::Nowhere),
    ("memory", Side::Memory),
    ("pool", Side::Pool),
];

/// What a process printed of one run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub seconds: f64,
    /// The most that it took, in bytes.
    pub memory: u64,
    pub events: u64,
}

impl Run {
    pub fn rate(self) -> f64 {
        self.events as f64 / self.seconds
    }
}

/// Runs a side in a process: with this file, or with so many events or messages.
pub fn measured(side: Side, input: &Path, events: u64) -> Result<Run, Failure> {
    let name = SIDES.iter().find(|(_, known)| *known == side).map_or("", |(name, _)| name);
    let output = input.with_extension(name);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["side", name]).arg(input).arg(&output).arg(events.to_string());
    let ran = command.output()?;
    for made in [output.with_extension("dead"), output] {
        // Not every side writes all of them.
        std::fs::remove_file(made).ok();
    }
    let text = String::from_utf8(ran.stdout)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [seconds, memory, events] = words.as_slice() else {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&ran.stderr)).into());
    };
    Ok(Run { seconds: seconds.parse()?, memory: memory.parse()?, events: events.parse()? })
}

/// Runs a side here, and prints its seconds, its peak memory and its events.
pub fn run(name: &str, args: &[&str]) -> Result<ExitCode, Failure> {
    let side = SIDES.iter().find(|(known, _)| *known == name);
    let (_, side) = side.ok_or_else(|| format!("there is no side {name}"))?;
    let [input, output, events] = args else {
        return Err("a side needs two files and a number".into());
    };
    let (input, output, events) = (PathBuf::from(input), PathBuf::from(output), events.parse()?);
    let start = Instant::now();
    let (took, events) = match side {
        Side::Floor(lines) => (None, file::floor(&input, &output, *lines)?),
        Side::Engine { lines, is_ordered } => {
            (None, on_runtime(file::engine(&input, &output, *lines, *is_ordered))?)
        }
        Side::Parse => (None, file::read_and_parse(&input)?),
        Side::Nowhere => {
            (None, on_runtime(file::to_nowhere(&input, &output.with_extension("dead")))?)
        }
        Side::Memory => {
            let dead_letters = output.with_extension("dead");
            let (took, events) = on_runtime(memory::engine(events, &dead_letters))?;
            (Some(took), events)
        }
        Side::Pool => (None, on_runtime(pool::keyed(events))?),
    };
    let took = took.unwrap_or_else(|| start.elapsed());
    println!("{} {} {events}", took.as_secs_f64(), peak_memory()?);
    Ok(ExitCode::SUCCESS)
}

fn on_runtime<T>(run: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run)
}

fn peak_memory() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1_024)
}
