//! The engine beside a bare loop over the client that it is built on.
//!
//! A stream is filled once. Each round then reads all of it three times, right after one another
//! and each time in another order, by a new group and with the same number of entries asked for:
//!
//! * `bare`: a loop that reads some entries, and acknowledges each of them in one pipeline;
//! * `parsed`: the same, and each entry becomes an event first;
//! * `engine`: a `RedisSource`, 64 workers in order of the subject, and a handler that does
//!   nothing.
//!
//! The clock runs from before the group is made until the server has all acknowledgements. Prints
//! events per second and the processor time of an event in this process (that of the server is not
//! in it), then the engine's share of each of the others: the median of all rounds, with the least
//! and the greatest.
//!
//! ```text
//! scripts/redis up 6380
//! GREENROOM_REDIS=127.0.0.1:6380 cargo run --profile measure --manifest-path bench/Cargo.toml \
//!     -p redis-streams -- --events 300000 --rounds 5
//! ```

mod bare;
mod engine;
mod stream;

use std::{env, error::Error, time::Instant};

use measure::{Options, figure, machine, max, median, min, processor_time};
use tokio::runtime::Runtime;

use crate::stream::Filled;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failed = Box<dyn Error + Send + Sync>;

const USUAL: Options = Options { events: 300_000, rounds: 5 };

/// Entries that are asked for at a time: what a `RedisSource` does unless it is told otherwise.
const BATCH: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Bare,
    Parsed,
    Engine,
}

impl Side {
    const ALL: [Self; 3] = [Self::Bare, Self::Parsed, Self::Engine];

    fn name(self) -> &'static str {
        ["bare", "parsed", "engine"][self as usize]
    }
}

fn main() -> Result<(), Failed> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let options = Options::of(&args, USUAL)?;
    let address = env::var("GREENROOM_REDIS").map_err(
        |_| "no server: run `scripts/redis up 6380`, then this with GREENROOM_REDIS=127.0.0.1:6380",
    )?;
    let runtime = Runtime::new()?;
    let filled = runtime.block_on(Filled::new(address, options.events))?;
    let client = measure::locked("redis");
    println!("{}; redis-server {}, redis-rs {client}", machine(), filled.version);
    println!("{} events, {} bytes each on average", options.events, filled.bytes());
    let all = rounds(&runtime, &filled, options);
    let removed = runtime.block_on(filled.remove());
    let rates = all?;
    removed?;
    for (other, name) in [(0, "bare"), (1, "parsed")] {
        let shares: Vec<f64> = rates.iter().map(|round| round[2] / round[other]).collect();
        let [median, least, most] = [median(&shares), min(&shares), max(&shares)];
        println!("engine / {name}: {median:.2} ({least:.2} to {most:.2})");
    }
    Ok(())
}

/// Events per second of each side, by rounds. One that does not count goes ahead.
fn rounds(runtime: &Runtime, filled: &Filled, options: Options) -> Result<Vec<[f64; 3]>, Failed> {
    let mut all = Vec::new();
    for round in 0..=options.rounds {
        let mut rates = [0.0; 3];
        for turn in 0..Side::ALL.len() {
            let side = Side::ALL[(round + turn) % Side::ALL.len()];
            let (rate, processor) = measured(runtime, filled, side, round)?;
            rates[side as usize] = rate;
            let counts = if round == 0 { "not counted" } else { "" };
            println!(
                "{:6}  {:>9} events/s  {processor:6.2} µs of an event  {counts}",
                side.name(),
                figure(rate)
            );
        }
        if round > 0 {
            all.push(rates);
        }
    }
    Ok(all)
}

fn measured(
    runtime: &Runtime,
    filled: &Filled,
    side: Side,
    round: usize,
) -> Result<(f64, f64), Failed> {
    let group = format!("{}-{round}", side.name());
    let (started, before) = (Instant::now(), processor_time());
    let taken = match side {
        Side::Bare => runtime.block_on(bare::read(filled, &group, false)),
        Side::Parsed => runtime.block_on(bare::read(filled, &group, true)),
        Side::Engine => runtime.block_on(engine::read(filled, &group)),
    }?;
    let events = filled.count as f64;
    let took = taken.duration_since(started).as_secs_f64();
    Ok((events / took, (processor_time() - before) * 1e6 / events))
}
