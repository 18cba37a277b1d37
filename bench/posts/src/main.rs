//! `POST /events` beside the log that it appends to.
//!
//! 64 senders, each with one post under way, of one event of 1 KiB or of 100: over HTTP on
//! loopback, with sender and server in this process, and straight into the log. Both sides take
//! turns in one run, each with a new log, so that the disk is the same; either way a commit takes
//! all that waits. Prints the rates, the 99th percentile and the syncs of each round, and the share
//! of the medians.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml -p posts -- [SECONDS] [ROUNDS] [DIRECTORY]
//! ```

use std::{
    env,
    error::Error,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::{
    event::Event,
    source::http::{HttpSettings, Intake, listen},
    store::log::{EventLog, LogOptions, SegmentLog},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SENDERS: usize = 64;

/// Bytes of an event as JSON.
const SIZE: usize = 1_024;

type Failed = Box<dyn Error + Send + Sync>;

/// What one side came to.
struct Row {
    events: f64,
    p99: Duration,
    syncs: f64,
}

fn main() -> Result<(), Failed> {
    let mut words = env::args().skip(1);
    let seconds = words.next().map_or(Ok(3), |word| word.parse())?;
    let rounds = words.next().map_or(Ok(3), |word| word.parse())?;
    let directory = words.next().map_or_else(env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(all(Duration::from_secs(seconds), rounds, &directory))
}

async fn all(length: Duration, rounds: usize, directory: &Path) -> Result<(), Failed> {
    println!("events  side  events/s     p99  syncs/s");
    for batch in [1, 100] {
        let (mut alone, mut posted) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            for is_http in [false, true] {
                let row = side(is_http, batch, length, directory).await?;
                let name = if is_http { "http" } else { "log" };
                let p99 = row.p99.as_secs_f64() * 1e3;
                println!(
                    "{batch:6}  {name:4}  {:8.0}  {p99:4.1} ms  {:7.0}",
                    row.events, row.syncs
                );
                if is_http { posted.push(row.events) } else { alone.push(row.events) }
            }
        }
        let share = median(&mut posted) / median(&mut alone) * 100.0;
        println!("{batch:6}  share of the medians: {share:.0}%");
    }
    Ok(())
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

async fn side(
    is_http: bool,
    batch: usize,
    length: Duration,
    directory: &Path,
) -> Result<Row, Failed> {
    let directory = tempfile::tempdir_in(directory)?;
    let log = SegmentLog::open(directory.path().join("log"), LogOptions::default())?;
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let settings = HttpSettings::default();
    let intake = Arc::new(Intake::new(listener, "/events", settings, Arc::new(log.clone()))?);
    intake.open();
    let (started, syncs) = (Instant::now(), log.standing().syncs);
    let until = started + length;
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        match is_http {
            true => senders.spawn(post(intake.address(), sender, batch, until)),
            false => senders.spawn(append(log.clone(), sender, batch, until)),
        };
    }
    let mut latencies = Vec::new();
    while let Some(ended) = senders.join_next().await {
        latencies.append(&mut ended??);
    }
    let took = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let row = Row {
        events: (latencies.len() * batch) as f64 / took,
        p99: latencies[latencies.len() * 99 / 100],
        syncs: (log.standing().syncs - syncs) as f64 / took,
    };
    intake.closed(Duration::from_secs(5)).await;
    log.close().await;
    Ok(row)
}

async fn append(
    log: SegmentLog,
    sender: usize,
    batch: usize,
    until: Instant,
) -> Result<Vec<Duration>, Failed> {
    let mut latencies = Vec::new();
    while Instant::now() < until {
        let from = latencies.len() * batch;
        let events: Result<Vec<_>, _> = (from..from + batch)
            .map(|n| Event::builder(id(sender, n), "/bench", "t").data_json(&filler()).build())
            .collect();
        let started = Instant::now();
        log.append(events?).await?;
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}

async fn post(
    to: SocketAddr,
    sender: usize,
    batch: usize,
    until: Instant,
) -> Result<Vec<Duration>, Failed> {
    let mut stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let (mut latencies, mut answer) = (Vec::new(), vec![0; 4_096]);
    while Instant::now() < until {
        let from = latencies.len() * batch;
        let events: Vec<_> = (from..from + batch).map(|n| json(sender, n)).collect();
        let (ty, body) = match batch {
            1 => ("application/cloudevents+json", events.concat()),
            _ => ("application/cloudevents-batch+json", format!("[{}]", events.join(","))),
        };
        let request = format!(
            "POST /events HTTP/1.1\r\nhost: h\r\ncontent-type: {ty}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let started = Instant::now();
        stream.write_all(request.as_bytes()).await?;
        let read = stream.read(&mut answer).await?;
        if !answer[..read].starts_with(b"HTTP/1.1 202") {
            return Err(String::from_utf8_lossy(&answer[..read]).into());
        }
        latencies.push(started.elapsed());
    }
    Ok(latencies)
}

fn id(sender: usize, number: usize) -> String {
    format!("{sender:02}-{number:010}")
}

/// Data that makes an event as long as it is to be.
fn filler() -> String {
    "x".repeat(SIZE - r#"{"specversion":"1.0","id":"00-0000000000","source":"/bench","type":"t","data":""}"#.len())
}

fn json(sender: usize, number: usize) -> String {
    let (id, data) = (id(sender, number), filler());
    format!(r#"{{"specversion":"1.0","id":"{id}","source":"/bench","type":"t","data":"{data}"}}"#)
}
