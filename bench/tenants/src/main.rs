//! One tenant sends a million messages over 100,000 keys at once, 99 others ten a second each, to
//! 64 workers with handlers of 5 ms (Q13): what the others feel of it.
//!
//! `tenants [--rounds N] [--events N]` measures in each round, for ten seconds behind five of the
//! start, the others alone, and beside the flood with shares, without them, with semaphores by
//! tenant and with a queue per tenant; then eight floods of messages that take 2 to 16 ms, whose
//! time in hand should be level. Prints medians and ranges. Speed is printed, not judged, because
//! machines differ.
//!
//! `tenants sources [file|log|kafka|nats ..]` does the same with an engine that reads a file that
//! grows, the durable log, Kafka and NATS JetStream ([`sources`]).

mod channel;
mod engine;
mod event;
mod load;
mod memory;
mod sources;
mod systems;

use std::process::ExitCode;

use measure::{Options, Watch, figure, locked, machine, max, median, min};

use self::{
    load::{Figures, Load},
    systems::System,
};

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const POOL: System = System::Pool { shares: true };
const ENGINE: System = System::Engine { shares: true };

/// What is measured, and whether beside the flood.
const SIDES: [(System, bool); 8] = [
    (POOL, false),
    (POOL, true),
    (ENGINE, false),
    (ENGINE, true),
    (System::Pool { shares: false }, true),
    (System::Engine { shares: false }, true),
    (System::Semaphores, true),
    (System::Queues, true),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let usual = Options { events: 1_000_000, rounds: 5 };
    let done = match args.split_first() {
        Some((&"sources", args)) => sources::measure_all(args, usual),
        _ => Options::of(&args, usual).map_err(Failure::from).and_then(measure_all),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(options: Options) -> Result<(), Failure> {
    println!("greenroom {}, tokio {}", env!("CARGO_PKG_VERSION"), locked("tokio"));
    println!("{}", machine());
    let (mut rounds, mut levels) = (Vec::new(), Vec::new());
    for number in 0..options.rounds {
        let watch = Watch::start();
        let mut round = [Figures::default(); SIDES.len()];
        for turn in 0..SIDES.len() {
            let place = (turn + number) % SIDES.len();
            let (system, flood) = SIDES[place];
            round[place] = system.run(Load::flood_of(if flood { options.events } else { 0 }))?;
        }
        rounds.push(round);
        levels.push(
            [POOL, ENGINE]
                .map(|system| system.run(Load::eight_floods(options.events)))
                .into_iter()
                .collect::<Result<Vec<_>, Failure>>()?,
        );
        eprintln!(
            "round {} of {}: others used {} cores",
            number + 1,
            options.rounds,
            figure(watch.cores())
        );
    }
    table(&rounds);
    for (place, system) in [POOL, ENGINE].into_iter().enumerate() {
        let jain: Vec<f64> = levels.iter().map(|round| round[place].jain).collect();
        println!(
            "{}: Jain's index of eight floods {:.4} ({:.4} to {:.4})",
            system.name(),
            median(&jain),
            min(&jain),
            max(&jain)
        );
    }
    Ok(())
}

fn table(rounds: &[[Figures; SIDES.len()]]) {
    println!(
        "{:<42} {:>24} {:>26} {:>20} {:>10} {:>12}",
        "", "p50 ms", "p99 ms", "of alone", "not done", "the flood's"
    );
    for (place, (system, flood)) in SIDES.iter().enumerate() {
        let column = |of: &dyn Fn(&[Figures; SIDES.len()]) -> f64| {
            rounds.iter().map(of).collect::<Vec<f64>>()
        };
        let alone = if matches!(system, System::Engine { .. }) { 2 } else { 0 };
        let name = format!("{}, {}", system.name(), if *flood { "flood" } else { "no flood" });
        let median_of = |of: fn(&Figures) -> f64| median(&column(&|round| of(&round[place])));
        println!(
            "{name:<42} {:>24} {:>26} {:>20} {:>10.0} {:>12.1}",
            spread(&column(&|round| round[place].p50)),
            spread(&column(&|round| round[place].p99)),
            spread(&column(&|round| round[place].p99 / round[alone].p99)),
            median_of(|of| of.missing),
            median_of(|of| of.workers),
        );
    }
    println!("p99: of what was not done, the time until the end; the flood's: workers on average");
}

fn spread(values: &[f64]) -> String {
    format!("{:.2} ({:.2} to {:.2})", median(values), min(values), max(values))
}
