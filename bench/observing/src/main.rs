//! What it costs a greenroom to be looked at. `observing --help` says more.

mod compare;
mod pace;
mod receiver;
mod run;
mod side;
mod visitors;

use std::process::ExitCode;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: observing GREENROOM [SIDE..] [--windows N] [--rounds N] [--rate N] [--workers N]

  GREENROOM  the binary, built with --release; for `otlp` with the feature of that name
  SIDE       off        no admin listener
             listener   one that nobody asks
             watched    every other window, a page is open, and /metrics is scraped each second
             otlp       traces, metrics and logs to a receiver that takes all

  Runs 100000 events a second (--rate) of 100000 keys through 1024 workers (--workers) whose handler does nothing, all sides in turn,
  a process each, 5 rounds; after a warm-up it measures 5 windows (--windows) of 3 seconds. Prints the processor time of an event,
  medians and ranges, what each side adds to `off` within the rounds and what visitors add within a process, and how long scrapes took.
  Exits with 1 when a side did not keep the pace or lost an event; speed is printed, not judged.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] | ["--help" | "-h" | "help", ..] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        [binary, options @ ..] => match compare::run(binary, options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}
