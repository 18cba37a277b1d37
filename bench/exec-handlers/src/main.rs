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

/// Processes of either side, each with one event in hand.
const WORKERS: usize = 2;

const USAGE: &str = "\
usage: exec-handlers [--events N] [--rounds N]

  Hands N events (20000 unless said otherwise) of 1 KiB to two worker processes, each of which has one in hand: by the engine with
  an `exec` handler of two workers, and by two threads that write a line, read the answer, and do nothing else. The processes are
  this binary, and Python. All take turns, 5 rounds unless said otherwise. The start of the processes counts on either side. Prints
  medians, ranges, the ratios within the rounds, and the processor time of each event without the workers'. Exits with 1 when an
  event is lost; speed is printed, not judged.
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
