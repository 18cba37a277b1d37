//! Measures one pool twice: at full speed, and at a fixed rate.
//!
//! At full speed: a task per core sends, and the pool's bound holds it back. At a rate: arrivals
//! that wait for no answer (an open loop), from threads outside the runtime, as a timer of the
//! runtime is up to a millisecond late by itself. The latency of a message counts from its due
//! time, so that a stall is charged for every message that it delayed.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use greenroom::{Pool, Stop};
use greenroom_bus::source::generator::zipf::{Chance, Zipf};
use tokio::runtime::Handle;

use super::{machine, work::Work};
use crate::{
    cli::BenchArgs,
    commands::trial::{Arrival, Taken, Takes, Trial},
    latencies::Latencies,
    progress,
};

/// This many keys are drawn before anything runs, and then reused from the first.
const DRAWN: u32 = 1 << 20;
/// Messages between two readings of the clock.
const RUN: u32 = 64;
/// The time between two readings of the process's memory.
const SAMPLE: Duration = Duration::from_millis(20);
/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(60);
/// Below this part of the rate, the machine did not keep up.
const KEPT_UP: f64 = 0.9;

/// The load to measure.
pub(super) struct Load {
    workers: usize,
    mailbox: usize,
    rate: f64,
    length: Duration,
    work: Work,
    /// In the order of sending; none for messages without a key.
    keys: Option<Arc<[u32]>>,
}

/// The result of a measurement.
pub(super) struct Measured {
    /// Messages per second, at full speed.
    pub(super) per_s: f64,
    /// The time from due to handled; none if the machine did not keep up.
    pub(super) p99: Option<Duration>,
    /// The largest growth of the process; none if the system does not reveal it.
    pub(super) memory: Option<u64>,
}

/// The state that the workers of a pool share.
struct Bench {
    work: Work,
    /// When the pool was ready.
    started: OnceLock<Instant>,
    /// For messages with a due time.
    latencies: Latencies,
}

impl Takes for Bench {
    fn take(&self, _slot: usize, arrival: Arrival) -> Taken<'_> {
        self.work.run(arrival.number.into());
        if let Some(started) = self.started.get().filter(|_| !arrival.due.is_zero()) {
            self.latencies.record(started.elapsed().saturating_sub(arrival.due));
        }
        Taken::Done
    }
}

impl Load {
    pub(super) fn new(workers: usize, mailbox: usize, args: &BenchArgs) -> Self {
        let draw = |keys| {
            let (zipf, mut chance) = (Zipf::new(keys, 1.0), Chance::new(1));
            (0..DRAWN).map(|_| zipf.draw(&mut chance)).collect()
        };
        Self {
            workers,
            mailbox,
            rate: args.rate,
            length: args.seconds.0,
            work: Work::new(args.work),
            keys: (args.keys > 0).then(|| draw(args.keys)),
        }
    }
}

/// Measures, on its own runtime.
///
/// # Errors
/// The threads or the pool could not be started, or a message was lost.
pub(super) fn measure(load: &Load) -> Result<Measured, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    let (before, most) = (machine::resident(), AtomicU64::new(0));
    runtime.block_on(async {
        let (per_s, _) = tokio::select! {
            ended = run(load, None) => ended?,
            () = sample(&most) => unreachable!("sampling goes on until it is dropped"),
        };
        let (paced, bench) = run(load, Some(load.rate)).await?;
        let p99 = bench.latencies.percentile(0.99);
        let memory = before.map(|before| most.load(Relaxed).saturating_sub(before));
        Ok(Measured { per_s, p99: p99.filter(|_| paced >= KEPT_UP * load.rate), memory })
    })
}

/// Sends, waits until everything is handled, and returns the messages handled per second.
async fn run(load: &Load, rate: Option<f64>) -> Result<(f64, Arc<Bench>), String> {
    let (started, latencies) = (OnceLock::new(), Latencies::new());
    let bench = Arc::new(Bench { work: load.work, started, latencies });
    let pool = Trial::pool(bench.clone()).name("bench");
    let pool = pool.workers(load.workers).mailbox(load.mailbox).spawn().await;
    let pool = Arc::new(pool.map_err(|error| error.to_string())?);
    let started = *bench.started.get_or_init(Instant::now);
    let senders = machine::cores() as u32;
    let start = |index| {
        let sender = Sender {
            index,
            senders,
            pool: pool.clone(),
            keys: load.keys.clone(),
            length: load.length,
            started,
        };
        match rate.map(|rate| rate / f64::from(senders)) {
            None => tokio::spawn(sender.unpaced()),
            Some(rate) => {
                let runtime = Handle::current();
                tokio::task::spawn_blocking(move || sender.paced(rate, &runtime))
            }
        }
    };
    let sending: Vec<_> = (0..senders).map(start).collect();
    let mut sent = 0;
    for sender in sending {
        sent += u64::from(sender.await.map_err(|error| error.to_string())??);
    }
    let left = pool.stop(Stop::within(DRAIN)).await.left_over.len();
    if left > 0 {
        return Err(format!("{left} of {sent} messages were not handled after {DRAIN:?}"));
    }
    Ok((sent as f64 / started.elapsed().as_secs_f64(), bench))
}

struct Sender {
    index: u32,
    /// The number of senders: each takes every n-th key.
    senders: u32,
    pool: Arc<Pool<Trial>>,
    keys: Option<Arc<[u32]>>,
    length: Duration,
    started: Instant,
}

impl Sender {
    async fn send(&self, nth: u32, due: Duration) -> Result<(), String> {
        let number = nth.wrapping_mul(self.senders).wrapping_add(self.index);
        let key = self.keys.as_ref().map(|keys| keys[number as usize % keys.len()]);
        let arrival = Arrival { due, key, number, share: 0 };
        self.pool.send(arrival).await.map_err(|error| error.to_string())
    }

    /// At full speed; a late start still sends some. Returns the number of messages sent.
    async fn unpaced(self) -> Result<u32, String> {
        let mut sent = 0;
        loop {
            for nth in sent..sent + RUN {
                self.send(nth, Duration::ZERO).await?;
            }
            sent += RUN;
            if self.started.elapsed() >= self.length {
                return Ok(sent);
            }
        }
    }

    /// Draws due times by Poisson's law, on a thread that may sleep. Ends after twice its time if
    /// the rate is too high for this machine.
    fn paced(self, rate: f64, runtime: &Handle) -> Result<u32, String> {
        let (mut due, mut chance) = (Duration::ZERO, Chance::new(u64::from(self.index) + 1));
        for sent in 0.. {
            due += Duration::from_secs_f64(-(1.0 - chance.unit()).ln() / rate);
            if due >= self.length || self.started.elapsed() >= 2 * self.length {
                return Ok(sent);
            }
            if let Some(left) = due.checked_sub(self.started.elapsed()) {
                thread::sleep(left);
            }
            // Zero would mean that it is not measured.
            runtime.block_on(self.send(sent, due.max(Duration::from_nanos(1))))?;
        }
        Ok(u32::MAX)
    }
}

/// Records the peak memory of the process until the future is dropped.
async fn sample(most: &AtomicU64) {
    let mut ticks = progress::ticks(SAMPLE);
    loop {
        most.fetch_max(machine::resident().unwrap_or(0), Relaxed);
        ticks.tick().await;
    }
}
