//! What is offered: each system with its rows.

use serde::Serialize;

use crate::{
    Failure,
    bench::Bench,
    calls, full, keyed, latency,
    peers::{
        actix::ActixActors,
        crossbeam::Crossbeam,
        flume::Flume,
        kameo::Kameo,
        kameo_pool::KameoPool,
        kanal::Kanal,
        queues::{Own, Shared},
        ractor::{KeyPersistent, Queuer, Ractor, RoundRobin, Sticky},
    },
    row::Row,
    system::{Calls, System},
    unkeyed,
};

/// One system.
#[derive(Serialize)]
pub struct Offer {
    pub name: &'static str,
    pub version: &'static str,
    pub what: &'static str,
    pub rows: Vec<Row>,
    /// Runs one repetition with so many messages.
    #[serde(skip)]
    pub run: fn(&Bench, Row, u64) -> Result<f64, Failure>,
}

impl Offer {
    fn new<S: Calls>(
        name: &'static str,
        version: &'static str,
        what: &'static str,
        workloads: &str,
    ) -> Self {
        Self { name, version, what, rows: rows(workloads), run: run_with_calls::<S> }
    }

    fn without_calls<S: System>(
        name: &'static str,
        version: &'static str,
        what: &'static str,
        workloads: &str,
    ) -> Self {
        Self { name, version, what, rows: rows(workloads), run: run::<S> }
    }
}

/// The rows of workloads that are named by their letters.
fn rows(workloads: &str) -> Vec<Row> {
    Row::all().filter(|row| row.name().starts_with(|letter| workloads.contains(letter))).collect()
}

fn run<S: System>(bench: &Bench, row: Row, messages: u64) -> Result<f64, Failure> {
    match row {
        Row::Unkeyed { workers, nanos } => {
            unkeyed::run::<S>(workers, bench.calibration.work(nanos), messages)
        }
        Row::Keyed(draw) => keyed::run::<S>(&bench.keys(draw), messages),
        Row::Latency => latency::run::<S>(&bench.schedule(messages)),
        Row::Full => full::run::<S>(),
        Row::Calls { .. } => Err("it does not reply".into()),
    }
}

fn run_with_calls<S: Calls>(bench: &Bench, row: Row, messages: u64) -> Result<f64, Failure> {
    match row {
        Row::Calls { callers } => calls::run::<S>(callers, messages),
        _ => run::<S>(bench, row, messages),
    }
}

pub fn all() -> Vec<Offer> {
    [channels(), factories(), actors()].into_iter().flatten().collect()
}

fn channels() -> Vec<Offer> {
    let flume = env!("VERSION_FLUME");
    let kanal = env!("VERSION_KANAL");
    let crossbeam = env!("VERSION_CROSSBEAM_CHANNEL");
    let own = "tokio tasks, each with a channel of its own; round robin, or by the hash of the key";
    let shared = "tokio tasks that share one channel";
    let own_threads =
        "threads, each with a channel of its own; round robin, or by the hash of the key";
    let shared_threads = "threads that share one channel";
    vec![
        Offer::new::<Own<Flume>>("flume", flume, own, "ABCDE"),
        Offer::new::<Shared<Flume>>("flume shared", flume, shared, "ADE"),
        Offer::new::<Own<Kanal>>("kanal", kanal, own, "ABCDE"),
        Offer::new::<Shared<Kanal>>("kanal shared", kanal, shared, "ADE"),
        Offer::without_calls::<Own<Crossbeam>>("crossbeam", crossbeam, own_threads, "ABE"),
        Offer::without_calls::<Shared<Crossbeam>>(
            "crossbeam shared",
            crossbeam,
            shared_threads,
            "AE",
        ),
    ]
}

fn factories() -> Vec<Offer> {
    let version = env!("VERSION_RACTOR");
    vec![
        Offer::new::<Ractor<RoundRobin>>(
            "ractor round robin",
            version,
            "factory, RoundRobinRouting",
            "ADE",
        ),
        Offer::new::<Ractor<Queuer>>("ractor queuer", version, "factory, QueuerRouting", "ADE"),
        Offer::new::<Ractor<KeyPersistent>>(
            "ractor key persistent",
            version,
            "factory, KeyPersistentRouting",
            "ABCDE",
        ),
        Offer::new::<Ractor<Sticky>>(
            "ractor sticky",
            version,
            "factory, StickyQueuerRouting",
            "CDE",
        ),
    ]
}

fn actors() -> Vec<Offer> {
    let (kameo, pool) = (env!("VERSION_KAMEO"), env!("VERSION_KAMEO_ACTORS"));
    let own = "actors with bounded mailboxes; round robin, or by the hash of the key";
    let pooled = "kameo_actors::pool::ActorPool, the worker with the fewest messages";
    let actix = env!("VERSION_ACTIX");
    let heedless = "actors on two arbiters, do_send; round robin, or by the hash of the key";
    let heeding = "actors on two arbiters, try_send, and send where the mailbox is full";
    vec![
        Offer::new::<Kameo>("kameo", kameo, own, "ABCDE"),
        Offer::new::<KameoPool>("kameo pool", pool, pooled, "ADE"),
        Offer::new::<ActixActors<false>>("actix", actix, heedless, "ABCD"),
        Offer::new::<ActixActors<true>>("actix bounded", actix, heeding, "ABCE"),
    ]
}
