//! What an `exec` handler costs beside a loop that pipes the same lines through the same
//! processes. `exec-handlers --help` says more.

mod compare;
mod engine;
mod event;
mod piped;
mod worker;

use std::process::ExitCode;

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Processes of either side.
const PROCESSES: usize = 2;

/// How many events each of them has in flight, where it is more than one.
const IN_FLIGHT: usize = 16;

const USAGE: &str = "\
usage: exec-handlers [--events N] [--rounds N]

  Hands N events (20000 unless said otherwise) of 1 KiB to two worker processes: by the engine with an `exec` handler, and by two
  threads that write lines, read the answers, and do nothing else. Each process has one event in flight, or 16. The processes are
  this binary, and Python. All take turns, 5 rounds unless said otherwise. The start of the processes counts on either side. Prints
  medians, ranges, the ratios to the loop with one in flight within the rounds, and the processor time of each event without the
  workers'. Exits with 1 when an event is lost; speed is printed, not judged.
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
        ["worker"] => worker::run(),
        options => compare::run(options),
    }
}
