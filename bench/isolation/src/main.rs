//! An engine's pools beside one whose handlers are all suspended (R05): throughput and latency, beside those without it.
//!
//! `isolation [--rounds N] [--events N] [--seconds N] [--rate N] [--pools N,..]` measures, in each round, the free pools alone, twice, and
//! beside a stuck one that says `pause`, `reject` and `dead_letter`, in an order that turns with the rounds, and prints medians,
//! ranges, and the ratios within each round. Exits with 1 when an event is lost or has the wrong end; speed is printed, not
//! judged, because machines differ.

mod handlers;
mod load;
mod repetition;
mod source;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use greenroom_bus::engine::OnFull;
use measure::{Watch, figure, locked, machine, max, median, min, ping_pong};

use self::{
    load::Load,
    repetition::{Figures, run},
};

/// The allocator of the `greenroom` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

/// Events for the stuck pool in each run: nearly as many as an input may hold back beside it.
const STUCK: u64 = 9_500;

struct Options {
    rounds: usize,
    /// Free events of a run that is as fast as it can be.
    events: u64,
    /// The length of a run with arrivals at a rate.
    seconds: u64,
    /// Their rate.
    rate: u64,
    /// How many free pools.
    pools: Vec<u64>,
}

impl Options {
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options =
            Self { rounds: 7, events: 3_000_000, seconds: 5, rate: 20_000, pools: vec![1, 256] };
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a number"))?;
            let number = || value.parse::<u64>().ok().filter(|number| *number > 0);
            let number =
                || number().ok_or_else(|| format!("{name}: {value:?} is no number above 0"));
            match &*name {
                "--rounds" => options.rounds = number()? as usize,
                "--events" => options.events = number()?,
                "--seconds" => options.seconds = number()?,
                "--rate" => options.rate = number()?,
                "--pools" => options.pools = pools(&value)?,
                _ => {
                    let known = "--rounds, --events, --seconds, --rate, --pools";
                    return Err(format!("there is no {name}; there are: {known}").into());
                }
            }
        }
        Ok(options)
    }
}

fn pools(list: &str) -> Result<Vec<u64>, Failure> {
    let one = |word: &str| word.parse().ok().filter(|pools| (1..=1_024).contains(pools));
    let all: Option<Vec<u64>> = list.split(',').map(one).collect();
    all.ok_or_else(|| format!("--pools: {list:?} is no list of numbers from 1 to 1024").into())
}

/// What the free pools have beside them.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Alone,
    /// What it differs from the first time is the machine's doing.
    AloneAgain,
    Beside(OnFull),
}

const SIDES: [Side; 5] = [
    Side::Alone,
    Side::AloneAgain,
    Side::Beside(OnFull::Pause),
    Side::Beside(OnFull::Reject),
    Side::Beside(OnFull::DeadLetter),
];

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::AloneAgain => "alone once more",
            Self::Beside(OnFull::Pause) => "beside one that pauses",
            Self::Beside(OnFull::Reject) => "beside one that rejects",
            Self::Beside(OnFull::DeadLetter) => "beside one with dead letters",
        }
    }

    fn run(self, load: Load, scratch: &Path) -> Result<Figures, Failure> {
        match self {
            Self::Alone | Self::AloneAgain => {
                run(Load { stuck: 0, ..load }, OnFull::Pause, scratch)
            }
            Self::Beside(on_full) => run(load, on_full, scratch),
        }
    }
}

/// One side of one round: as fast as it can be, and with arrivals at a rate.
#[derive(Clone, Copy, Default)]
struct Measured {
    per_second: f64,
    p99: f64,
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn main() -> ExitCode {
    match Options::read(std::env::args().skip(1)).and_then(|options| measure_all(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(options: &Options) -> Result<(), Failure> {
    let scratch =
        Scratch(std::env::temp_dir().join(format!("greenroom-isolation-{}", std::process::id())));
    std::fs::create_dir_all(&scratch.0)?;
    println!("greenroom {}, tokio {}", env!("CARGO_PKG_VERSION"), locked("tokio"));
    println!("{}", machine());
    println!(
        "{} free events as fast as they can be, then {} s of {} a second; {STUCK} for the stuck pool among them",
        options.events, options.seconds, options.rate
    );
    for pools in &options.pools {
        // One that does not count: the first has to find its memory.
        round(options, *pools, 0, &scratch.0)?;
        let mut rounds = Vec::new();
        for number in 1..=options.rounds {
            let (before, watch) = (ping_pong(), Watch::start());
            let figures = round(options, *pools, number, &scratch.0)?;
            eprintln!(
                "{pools} pools, round {number} of {}: a cache line takes {} ns before and {} ns after, others used {} cores",
                options.rounds,
                figure(before),
                figure(ping_pong()),
                figure(watch.cores())
            );
            rounds.push(figures);
        }
        table(*pools, &rounds);
    }
    Ok(())
}

/// All sides, one right after the other, each round with another one first: what comes first or last in a round is not always
/// the same.
fn round(
    options: &Options,
    pools: u64,
    number: usize,
    scratch: &Path,
) -> Result<[Measured; SIDES.len()], Failure> {
    let flat_out = Load { free: options.events, stuck: STUCK, pools, rate: None };
    let arrivals = options.seconds * options.rate;
    let paced = Load { free: arrivals, rate: Some(options.rate as f64), ..flat_out };
    let mut all = [Measured::default(); SIDES.len()];
    for turn in number..number + SIDES.len() {
        let place = turn % SIDES.len();
        all[place].per_second = SIDES[place].run(flat_out, scratch)?.per_second;
    }
    for turn in number..number + SIDES.len() {
        let place = turn % SIDES.len();
        all[place].p99 = SIDES[place].run(paced, scratch)?.p99;
    }
    Ok(all)
}

fn table(pools: u64, rounds: &[[Measured; SIDES.len()]]) {
    println!();
    let free = if pools == 1 { "1 free pool".to_owned() } else { format!("{pools} free pools") };
    println!(
        "{free:<30} {:>10} {:>24}   {:>9} {:>24}",
        "events/s", "of alone", "p99 us", "of alone"
    );
    for (place, side) in SIDES.iter().enumerate() {
        let all = |of: fn(&Measured) -> f64| {
            rounds.iter().map(|round| of(&round[place])).collect::<Vec<_>>()
        };
        let ratios = |of: fn(&Measured) -> f64| {
            rounds.iter().map(|round| of(&round[place]) / of(&round[0])).collect::<Vec<_>>()
        };
        let (rate, p99) = (|of: &Measured| of.per_second, |of: &Measured| of.p99);
        println!(
            "{:<30} {:>10} {:>24}   {:>9} {:>24}",
            side.name(),
            figure(median(&all(rate))),
            spread(&ratios(rate)),
            figure(median(&all(p99))),
            spread(&ratios(p99)),
        );
    }
    println!("aim: throughput 0.90 and more of alone, p99 1.10 and less");
}

/// The median with the least and the greatest.
fn spread(ratios: &[f64]) -> String {
    format!("{:.2} x ({:.2} to {:.2})", median(ratios), min(ratios), max(ratios))
}
