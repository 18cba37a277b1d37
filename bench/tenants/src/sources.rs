//! The same load, published to a file that grows, the durable log, Kafka and NATS JetStream, and
//! read by one input of an engine with the usual queue (Q13).
//!
//! There, fairness reaches as far as the input reads ahead. So the flood is 5,000 events a
//! partition, and as many again as were handled, for as long as the run lasts; the input may run
//! ahead by twice that. With `--events` at once (1,000,000), the others' events lie behind them
//! unread, and the input says which share it stands for.

use std::{sync::Arc, time::Duration};

use greenroom_bus::engine::InputConfig;

use measure::{Options, Watch, figure, locked, machine, median, min};

use crate::{
    Failure,
    channel::{Kind, Publisher},
    engine::{self, Stopping},
    load::{Figures, Load, Sheet},
    spread,
};

/// Events of the flood in a partition.
const FLOOD: u64 = 5_000;
/// How far the input may run ahead in a partition.
pub const RUN_AHEAD: usize = 10_000;
/// How often the flood is filled up.
const FILLED: Duration = Duration::from_millis(10);
/// Events that are published at a time before a run.
const CHUNK: usize = 5_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Row {
    Alone,
    Flood,
    NoShares,
    Level,
    Million,
}

impl Row {
    const ALL: [Self; 5] = [Self::Alone, Self::Flood, Self::NoShares, Self::Level, Self::Million];

    fn name(self) -> &'static str {
        match self {
            Self::Alone => "shares, no flood",
            Self::Flood => "shares, flood",
            Self::NoShares => "no shares, flood",
            Self::Level => "shares, eight floods, no others",
            Self::Million => "shares, all of a larger flood at once",
        }
    }

    fn load(self, kind: Kind, events: u64) -> Load {
        let flood = FLOOD * kind.partitions();
        match self {
            Self::Alone => Load::flood_of(0),
            Self::Flood | Self::NoShares => Load::flood_of(flood),
            Self::Level => Load::eight_floods(flood),
            Self::Million => Load::flood_of(events),
        }
    }

    fn run(self, kind: Kind, events: u64) -> Result<Run, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let run = runtime.block_on(self.run_there(kind, self.load(kind, events)));
        runtime.shutdown_background();
        run
    }

    async fn run_there(self, kind: Kind, load: Load) -> Result<Run, Failure> {
        let channel = kind.open().await?;
        let (flood, others) = (channel.publisher().await?, channel.publisher().await?);
        let mut jobs = load.flood();
        loop {
            let some: Vec<_> = jobs.by_ref().take(CHUNK).collect();
            if some.is_empty() {
                break;
            }
            flood.publish(some).await?;
        }
        let source = channel.source().await?;
        let input = InputConfig {
            run_ahead: RUN_AHEAD * kind.partitions() as usize,
            in_flight_bytes: (64 << 20) * kind.partitions(),
            ..InputConfig::default()
        };
        let sheet = Arc::new(Sheet::new(&load));
        load.pace(sheet.start, move |job| drop(others.publish(vec![job])));
        if self != Self::Million {
            tokio::spawn(fill(load, sheet.clone(), flood));
        }
        let pool = engine::pool(self != Self::NoShares)?;
        let stopping = engine::run(load, vec![(source, input)], pool, &sheet).await?;
        channel.remove().await?;
        Ok(Run { figures: sheet.figures(&load), stopping })
    }
}

/// Publishes as many events of the flood as were handled of it.
async fn fill(load: Load, sheet: Arc<Sheet>, publisher: Arc<dyn Publisher>) {
    let mut published = vec![load.messages; load.floods as usize];
    while !sheet.is_over() {
        let mut jobs = Vec::new();
        for (tenant, published) in (0..load.floods).zip(&mut published) {
            let wanted = load.messages + sheet.handled(tenant);
            jobs.extend((*published..wanted).map(|number| load.flooding(tenant, number)));
            *published = wanted;
        }
        if let Err(error) = publisher.publish(jobs).await {
            eprintln!("the flood cannot be published: {error}");
        }
        tokio::time::sleep(FILLED).await;
    }
}

#[derive(Debug, Clone)]
struct Run {
    figures: Figures,
    stopping: Stopping,
}

/// `[file|log|kafka|nats ..] [--rounds N] [--events N]`
pub fn measure_all(args: &[&str], usual: Options) -> Result<(), Failure> {
    let names = args.iter().take_while(|arg| !arg.starts_with("--")).count();
    let (names, options) = args.split_at(names);
    let options = Options::of(options, usual)?;
    let known = |name: &&str| Kind::named(name).ok_or_else(|| format!("unknown: {name}"));
    let mut kinds = names.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    if kinds.is_empty() {
        kinds.extend(Kind::ALL);
    }
    println!("greenroom {}, tokio {}", env!("CARGO_PKG_VERSION"), locked("tokio"));
    println!("{}", machine());
    for kind in kinds {
        match kind.variable().filter(|_| !kind.is_there()) {
            Some(variable) => println!("{}: left out, {variable} is not set", kind.name()),
            None => measure(kind, options)?,
        }
    }
    Ok(())
}

fn measure(kind: Kind, options: Options) -> Result<(), Failure> {
    let mut rounds = Vec::new();
    for number in 0..options.rounds {
        let watch = Watch::start();
        let mut runs = Row::ALL.map(|_| None);
        for turn in 0..Row::ALL.len() {
            let place = (turn + number) % Row::ALL.len();
            runs[place] = Some(Row::ALL[place].run(kind, options.events)?);
        }
        rounds.push(runs.into_iter().flatten().collect());
        let (round, cores) = (number + 1, figure(watch.cores()));
        eprintln!(
            "{}: round {round} of {}: others used {cores} cores",
            kind.name(),
            options.rounds
        );
    }
    table(kind, &rounds);
    Ok(())
}

fn table(kind: Kind, rounds: &[Vec<Run>]) {
    println!(
        "{:<44} {:>24} {:>26} {:>20} {:>9} {:>12} {:>7}",
        kind.name(),
        "p50 ms",
        "p99 ms",
        "of alone",
        "not done",
        "the floods'",
        "Jain"
    );
    for (place, row) in Row::ALL.into_iter().enumerate() {
        let column =
            |of: &dyn Fn(&[Run]) -> f64| rounds.iter().map(|round| of(round)).collect::<Vec<f64>>();
        let figures = |of: fn(&Figures) -> f64| column(&|round| of(&round[place].figures));
        println!(
            "{:<44} {:>24} {:>26} {:>20} {:>9.0} {:>12.1} {:>7.4}",
            row.name(),
            spread(&figures(|of| of.p50)),
            spread(&figures(|of| of.p99)),
            spread(&column(&|round| round[place].figures.p99 / round[0].figures.p99)),
            median(&figures(|of| of.missing)),
            median(&figures(|of| of.workers)),
            min(&figures(|of| of.jain)),
        );
        for Stopping { seen, looks, said } in rounds.iter().map(|round| &round[place].stopping) {
            if *seen > 0 {
                println!("    at {seen} of {looks} looks, the input stood for a share: {said}");
            }
        }
    }
}
