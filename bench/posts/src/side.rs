//! One side: a new log, those who fill it, and what they came to.

use std::{
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::{
    source::http::{HttpSettings, Intake, listen},
    store::log::{LogOptions, SegmentLog},
};
use measure::thread_time;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use crate::{
    Failed,
    consumer::consume,
    row::Row,
    senders::{Answered, append, post},
};

/// Segments where some are removed all the time, in bytes.
const SMALL: u64 = 16 << 20;

/// The threads whose processor time is told.
const THREADS: [&str; 3] = ["senders", "server", "greenroom-log"];

/// Whether events go over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Log,
    Http,
}

/// What both sides have in common.
pub struct Setting<'s> {
    pub batch: usize,
    /// A consumer is done with everything, and segments are removed.
    pub is_retained: bool,
    pub length: Duration,
    pub directory: &'s Path,
}

impl Setting<'_> {
    fn options(&self) -> LogOptions {
        match self.is_retained {
            false => LogOptions::default(),
            true => LogOptions {
                segment_bytes: SMALL,
                max_bytes: 64 * SMALL,
                keep_for: Duration::ZERO,
                ..LogOptions::default()
            },
        }
    }
}

fn runtime(name: &str) -> Result<Runtime, Failed> {
    Ok(Builder::new_multi_thread().enable_all().thread_name(name).build()?)
}

pub fn measured(side: Side, senders: usize, setting: &Setting<'_>) -> Result<Row, Failed> {
    let directory = tempfile::tempdir_in(setting.directory)?;
    let log = SegmentLog::open(directory.path().join("log"), setting.options())?;
    let (server, sending, consumer) =
        (runtime("server")?, runtime("senders")?, runtime("consumer")?);
    let consuming = setting.is_retained.then(|| consumer.spawn(consume(log.clone())));
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let settings = HttpSettings::default();
    let intake = Arc::new(Intake::new(listener, "/events", settings, Arc::new(log.clone()))?);
    server.block_on(async { intake.open() });
    let (before, syncs) = (THREADS.map(thread_time), log.standing().syncs);
    let started = Instant::now();
    let answered = sending.block_on(all(side, senders, setting, (intake.address(), &log)))?;
    let took = started.elapsed().as_secs_f64();
    let events = (answered.len() * setting.batch) as f64;
    let standing = log.standing();
    let mut processor = THREADS.map(thread_time);
    for (after, before) in processor.iter_mut().zip(before) {
        *after = (*after - before) / events * 1e6;
    }
    server.block_on(intake.closed(Duration::from_secs(5)));
    drop(intake);
    server.block_on(log.close());
    drop(log);
    if let Some(consuming) = consuming {
        consumer.block_on(consuming)??;
    }
    let mut latencies: Vec<_> = answered.iter().map(|(_, took)| *took).collect();
    latencies.sort_unstable();
    Ok(Row {
        name: if side == Side::Http { "http" } else { "log" },
        senders,
        batch: setting.batch,
        is_retained: setting.is_retained,
        events: events / took,
        p99: latencies[latencies.len() * 99 / 100],
        longest: latencies[latencies.len() - 1],
        pause: longest_pause(started, answered),
        syncs: (standing.syncs - syncs) as f64 / took,
        removed: standing.first.saturating_sub(1) / (SMALL / crate::SIZE as u64),
        processor,
    })
}

async fn all(
    side: Side,
    count: usize,
    setting: &Setting<'_>,
    (address, log): (SocketAddr, &SegmentLog),
) -> Result<Vec<Answered>, Failed> {
    let (batch, until) = (setting.batch, Instant::now() + setting.length);
    let mut senders = JoinSet::new();
    for sender in 0..count {
        match side {
            Side::Http => senders.spawn(post(address, sender, batch, until)),
            Side::Log => senders.spawn(append(log.clone(), sender, batch, until)),
        };
    }
    let mut answered = Vec::new();
    while let Some(ended) = senders.join_next().await {
        answered.append(&mut ended??);
    }
    Ok(answered)
}

fn longest_pause(started: Instant, answered: Vec<Answered>) -> Duration {
    let mut times: Vec<_> = answered.into_iter().map(|(time, _)| time).collect();
    times.sort_unstable();
    let earlier = [started].into_iter().chain(times.iter().copied());
    let pauses = earlier.zip(&times).map(|(earlier, later)| *later - earlier);
    pauses.max().unwrap_or_default()
}
