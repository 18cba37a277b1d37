//! What the engine costs: from file to file beside a floor that only reads, parses and writes, and
//! from memory to nowhere beside a pool without an engine. `end-to-end --help` says more.

mod compare;
mod file;
mod guarded;
mod memory;
mod pool;
mod random;
mod sides;

use std::process::ExitCode;

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Of the engine.
const WORKERS: usize = 64;

const USAGE: &str = "\
usage: end-to-end [--events N] [--rounds N]
       end-to-end guard [--record] [--file FILE]

  Writes N events (200000 unless said otherwise) to a file, then runs all sides in turn, a process each, so that its peak memory is
  its own; 5 rounds unless said otherwise; and the engine once more with ten times the events. Prints medians, ranges, and the ratios
  within the rounds. Exits with 1 when the engine's memory is above its bound or grows with the input, or when an event is lost;
  speed is printed, not judged, because machines differ.

  guard  counts the engine's instructions per event with valgrind, everything on one thread; fails where a row grew by more than
         5 % over what bench/instructions-of-events.json (--file) records; --record writes that file
";

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["--help" | "-h" | "help"] => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["side", name, args @ ..] => sides::run(name, args),
        ["guard", options @ ..] => guarded::run(options),
        ["callgrind", row, events] => guarded::run_once(row, events.parse()?),
        options => compare::run(options),
    }
}

/// Fails where the run was not as it should be.
fn clean(report: &greenroom_bus::engine::RunReport) -> Result<u64, Failure> {
    if !report.is_clean() || report.out_of_order > 0 || report.handled != report.taken {
        return Err(format!("{report:?}").into());
    }
    Ok(report.handled)
}
