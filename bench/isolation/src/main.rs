//! An engine's pools beside one whose handlers are all suspended (R05): throughput and latency,
//! beside those without it.
//!
//! `isolation [--rounds N] [--events N] [--seconds N] [--rate N] [--pools N,..]` measures, in each
//! round, the free pools alone, twice, and beside a stuck one that says `pause`, `reject` and
//! `dead_letter`, in an order that turns with the rounds, and prints medians, ranges, and the
//! ratios within each round. Exits with 1 when an event is lost or has the wrong end; speed is
//! printed, not judged, because machines differ.

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

/// Events for the stuck pool in each run, at most: nearly as many as an input
/// may hold back beside it.
const MOST_STUCK: u64 = 9_500;
/// Free events for one of them, as fast as can be and at a rate: it is the stuck pool that is to be
/// seen, not more arrivals or what a letter costs that is written and synced.
const FREE_PER_STUCK: u64 = 300;
const FREE_PER_STUCK_AT_RATE: u64 = 100;

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
            Self { rounds: 20, events: 1_000_000, seconds: 2, rate: 20_000, pools: vec![1, 256] };
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

    fn arrivals(&self) -> u64 {
        self.seconds * self.rate
    }

    fn flat_out(&self, pools: u64) -> Load {
        let stuck = (self.events / FREE_PER_STUCK).min(MOST_STUCK);
        Load { free: self.events, stuck, pools, rate: None }
    }

    fn paced(&self, pools: u64) -> Load {
        let free = self.arrivals();
        let stuck = (free / FREE_PER_STUCK_AT_RATE).min(MOST_STUCK);
        Load { free, stuck, pools, rate: Some(self.rate as f64) }
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
        "{} free events as fast as they can be, {} for the stuck pool among them; then {} s of {} a second, and {} for the stuck pool",
        options.events,
        options.flat_out(1).stuck,
        options.seconds,
        options.rate,
        options.paced(1).stuck
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

/// All sides, one right after the other, each round with another one first: what comes first or
/// last in a round is not always the same.
fn round(
    options: &Options,
    pools: u64,
    number: usize,
    scratch: &Path,
) -> Result<[Measured; SIDES.len()], Failure> {
    let of_each = |load| in_turn(number, |side| side.run(load, scratch));
    let (flat_out, paced) = (of_each(options.flat_out(pools))?, of_each(options.paced(pools))?);
    let place =
        |place: usize| Measured { per_second: flat_out[place].per_second, p99: paced[place].p99 };
    Ok(std::array::from_fn(place))
}

/// Measures every side, this round's first one first.
fn in_turn(
    round: usize,
    mut measure: impl FnMut(Side) -> Result<Figures, Failure>,
) -> Result<[Figures; SIDES.len()], Failure> {
    let mut all = [Figures::default(); SIDES.len()];
    for turn in round..round + SIDES.len() {
        let place = turn % SIDES.len();
        all[place] = measure(SIDES[place])?;
    }
    Ok(all)
}

fn table(pools: u64, rounds: &[[Measured; SIDES.len()]]) {
    println!();
    let free = if pools == 1 { "1 free pool".to_owned() } else { format!("{pools} free pools") };
    println!("{free:<30} {:>10} {:^38} {:>9} {:^38}", "events/s", "of alone", "p99 us", "of alone");
    for (place, side) in SIDES.iter().enumerate() {
        let column = |of: fn(&Measured) -> f64| {
            let all: Vec<f64> = rounds.iter().map(|round| of(&round[place])).collect();
            let ratios = rounds.iter().map(|round| of(&round[place]) / alone(round, *side, of));
            (figure(median(&all)), spread(&mut ratios.collect::<Vec<_>>()))
        };
        let (rate, rate_ratio) = column(|of| of.per_second);
        let (p99, p99_ratio) = column(|of| of.p99);
        println!("{:<30} {rate:>10} {rate_ratio:^38} {p99:>9} {p99_ratio:^38}", side.name());
    }
    println!(
        "aim: throughput 0.90 and more of alone, p99 1.10 and less; [where the median is, by 95%] (least to greatest)"
    );
}

/// What a side is compared to: to the first of those alone, or to both where it isn't one of them.
fn alone(round: &[Measured; SIDES.len()], side: Side, of: fn(&Measured) -> f64) -> f64 {
    match side {
        Side::Alone | Side::AloneAgain => of(&round[0]),
        Side::Beside(_) => f64::midpoint(of(&round[0]), of(&round[1])),
    }
}

/// The median, between which bounds it lies with 95%, and the least and the greatest. The bounds
/// are the values so many places from the middle as a fair coin leaves it in all but 5% of cases,
/// which asks nothing of how the values are distributed.
fn spread(ratios: &mut [f64]) -> String {
    ratios.sort_unstable_by(f64::total_cmp);
    let rounds = ratios.len() as f64;
    let below = (rounds / 2.0 - 0.98 * rounds.sqrt()).floor();
    let bounds = if below < 1.0 {
        "too few rounds".to_owned()
    } else {
        let at = below as usize - 1;
        format!("{:.2} to {:.2}", ratios[at], ratios[ratios.len() - 1 - at])
    };
    format!("{:.2} [{bounds}] ({:.2} to {:.2})", median(ratios), min(ratios), max(ratios))
}
