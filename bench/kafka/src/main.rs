//! Events of Kafka: the engine beside Confluent's parallel-consumer, and beside loops that do less;
//! and a long proof that nothing is lost. `kafka --help` says more.

mod broker;
mod compare;
mod engine;
mod letters;
mod loops;
mod made;
mod peer;
mod proof;
mod random;
mod row;
mod run;
mod side;
mod tally;
mod zipf;

use std::process::ExitCode;

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "\
usage: kafka [ROW..] [--events N] [--rounds N]
       kafka proof [--seconds N] [--events N] [--keys N] [--seed N] [--static]

  ROW     noop        64 workers, handlers that do nothing, 100000 Zipf keys
          10ms        1000 in flight, handlers of 10 ms, 1000 Zipf keys
          10ms-even   the same, each key as often; all of them unless named

  Publishes events of 1 KiB to 12 partitions (for noop 400000, or --events), then has all sides consume them in turn, a process and a
  group each, 5 rounds unless said otherwise. Prints medians, ranges, and the ratios within the rounds. Without a JDK and mvn, it
  runs without the parallel-consumer, and says so. Exits with 1 when a side has lost an event; speed is printed, not judged.

  proof   publishes N events (1000000) of so many Zipf keys (100000) to 12 partitions, evenly over so many seconds (600), while two
          processes of one group are killed and started again at random; waits until all is handled, and exits with 1 when an event
          was lost, or handled out of order. --seed repeats the moments of the kills; --static gives members names of their own.

  GREENROOM_KAFKA=HOST:PORT names a broker. Without it, one is started with scripts/kafka on port 12192, and removed at the end.
";

fn main() -> ExitCode {
    dispatch().unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn dispatch() -> Result<ExitCode, Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["--help" | "-h" | "help"] => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        ["side", args @ ..] => side::run(args),
        ["proof", options @ ..] => proof::run(options),
        ["member", args @ ..] => proof::member(args),
        options => compare::run(options),
    }
}
