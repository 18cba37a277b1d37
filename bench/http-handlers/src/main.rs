//! What an `http` handler costs beside a plain load generator with the same client and as many
//! connections. `http-handlers --help` says more.

mod compare;
mod engine;
mod events;
mod plain;
mod side;
mod target;

use std::process::ExitCode;

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Of the engine, and tasks of the load generator: so many requests are under way.
const AT_ONCE: usize = 64;

const USAGE: &str = "\
usage: http-handlers [--events N] [--rounds N]

  Posts N events (20000 unless said otherwise) of 1 KiB to a target on this machine, which runs in a process of its own: by the
  engine with 64 workers, and by 64 tasks that do nothing else, in turn, 5 rounds unless said otherwise. The target answers at once,
  after 5 ms, or at once and one in a hundred with 503. Prints medians, ranges, the ratios within the rounds, and the processor time
  of each request without the target's. Exits with 1 when an event is lost; speed is printed, not judged.
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
        ["target", answers] => target::run(answers),
        ["side", name, url, events] => side::run(name, url, events.parse()?),
        options => compare::run(options),
    }
}
