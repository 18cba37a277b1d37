//! What a durable append costs: SQLite and segment files in turn, on the same directory.
//!
//! usage: store DIRECTORY [SECONDS] [ROUNDS]      (defaults: 3 s for each figure, 3 rounds)

mod segments;
mod sqlite;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::{BoxFuture, event::Event};
use tokio::runtime::{Builder, Runtime};

/// What is measured.
trait Store: Send + Sync {
    /// Returns when these events are durable.
    fn append(&self, events: Vec<Event>) -> BoxFuture<'_, ()>;
    /// Syncs so far.
    fn syncs(&self) -> u64;
}

/// Who appends how much.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    writers: usize,
    batch: usize,
}

const LOADS: [Load; 3] = [
    Load { name: "64 writers, singly", writers: 64, batch: 1 },
    Load { name: "64 writers, 100 each", writers: 64, batch: 100 },
    Load { name: "1 writer, singly", writers: 1, batch: 1 },
];

const DATA: usize = 1_024;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().expect("the directory to write into"));
    let mut number =
        |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (seconds, rounds) = (Duration::from_secs(number(3)), number(3));
    let runtime = Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for round in 1..=rounds {
        println!("round {round}");
        for load in LOADS {
            for name in ["sqlite", "segments"] {
                let path =
                    directory.join(format!("{name}-{round}-{}-{}", load.writers, load.batch));
                let store: Arc<dyn Store> = match name {
                    "sqlite" => Arc::new(sqlite::Sqlite::open(&path)),
                    _ => Arc::new(segments::Segments::open(&path)),
                };
                measure(&runtime, name, load, &store, seconds);
                drop(store);
                if name == "segments" && load.batch == 100 {
                    recover(&path);
                }
                let _ = std::fs::remove_dir_all(&path);
            }
        }
    }
}

fn measure(runtime: &Runtime, name: &str, load: Load, store: &Arc<dyn Store>, time: Duration) {
    let (begin, syncs) = (Instant::now(), store.syncs());
    let writers: Vec<_> = (0..load.writers)
        .map(|writer| runtime.spawn(write(store.clone(), writer, load.batch, begin + time)))
        .collect();
    let mut took = Vec::new();
    for writer in writers {
        took.extend(runtime.block_on(writer).expect("a writer"));
    }
    let seconds = begin.elapsed().as_secs_f64();
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or_default();
    println!(
        "  {name:9} {:21} {:8.0} appends/s {:9.0} events/s   p99 {:6.1} ms  longest {:6.1} ms  {:5.0} syncs/s",
        load.name,
        took.len() as f64 / seconds,
        (took.len() * load.batch) as f64 / seconds,
        p99.as_secs_f64() * 1e3,
        took.last().copied().unwrap_or_default().as_secs_f64() * 1e3,
        (store.syncs() - syncs) as f64 / seconds,
    );
}

async fn write(
    store: Arc<dyn Store>,
    writer: usize,
    batch: usize,
    until: Instant,
) -> Vec<Duration> {
    let data = "x".repeat(DATA);
    let (mut took, mut n) = (Vec::new(), 0_u64);
    while Instant::now() < until {
        let events = (0..batch).map(|_| {
            n += 1;
            let event = Event::builder(format!("{writer}-{n}"), "/bench", "order.placed");
            event.subject("customer").data_json(&data).build().expect("an event")
        });
        let events = events.collect();
        let begin = Instant::now();
        store.append(events).await;
        took.push(begin.elapsed());
    }
    took
}

/// How long opening takes.
fn recover(path: &Path) {
    let begin = Instant::now();
    let (events, bytes) = segments::open_and_count(path);
    let mib = bytes / 1024 / 1024;
    println!(
        "  segments  opened {events} events ({mib} MiB) in {:.2} s",
        begin.elapsed().as_secs_f64()
    );
}
