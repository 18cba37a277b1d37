//! One measurement: senders, a sampler beside them, and a look whether everything came through.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use greenroom::Stop;
use greenroom_bus::source::generator::zipf::Chance;
use tokio::runtime::Handle;

use super::load::{Keys, Load, LoadTally, Message, To};
use crate::{
    latencies::Latencies,
    progress,
    report::{grouped, seconds},
};

/// Messages between two looks at the clock.
const RUN: usize = 64;
/// How often messages in flight are counted.
const SAMPLE: Duration = Duration::from_millis(5);
/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(60);
/// How long tasks that outlive a measurement may hold up the next.
const LAST_TASKS: Duration = Duration::from_secs(1);

/// What does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchSide {
    /// The senders themselves.
    Floor,
    Pool,
}

impl BenchSide {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "no engine",
            Self::Pool => "greenroom",
        }
    }
}

/// When messages are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SendPace {
    /// As soon as there is room.
    Unpaced,
    /// So many a second, by chance, whether there is room or not.
    At(f64),
}

/// What a measurement came to.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    pub(super) events: u64,
    /// From the start until the last one was handled.
    pub(super) elapsed: Duration,
    /// p50, p99, p99.9 from arrival to handled, where messages arrived at a rate.
    pub(super) latency: Option<[Duration; 3]>,
    /// The most messages in flight, of what was sampled.
    pub(super) peak_in_flight: u64,
}

impl Measured {
    pub(super) fn events_per_s(&self) -> f64 {
        self.events as f64 / self.elapsed.as_secs_f64()
    }
}

/// Measures, on a runtime of its own.
///
/// # Errors
/// No threads, a pool that did not start, or a message that was lost.
pub(super) fn measure(load: &Load, side: BenchSide, pace: SendPace) -> Result<Measured, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads: {error}"))?;
    let places = if side == BenchSide::Floor { load.senders } else { load.workers };
    let tally = LoadTally::new(load.senders, places);
    let peak = AtomicU64::new(0);
    let measured = runtime.block_on(async {
        tokio::select! {
            biased;
            ended = run(load, side, pace, &tally) => ended,
            () = sample(&tally, &peak) => unreachable!("sampling goes on until it is dropped"),
            () = show(side, pace, load, &tally) => unreachable!("progress is shown until it is dropped"),
        }
    });
    runtime.shutdown_timeout(LAST_TASKS);
    let elapsed = measured?;
    let (sent, handled) = (tally.sent(), tally.handled());
    if sent != handled {
        return Err(format!(
            "{sent} messages were sent, and {handled} handled (a defect: please report it)"
        ));
    }
    let percentile = |part| Latencies::percentile_of(&tally.latencies, part);
    let latency = percentile(0.5).zip(percentile(0.99)).zip(percentile(0.999));
    Ok(Measured {
        events: handled,
        elapsed,
        latency: latency.map(|((p50, p99), p999)| [p50, p99, p999]),
        peak_in_flight: peak.load(Relaxed),
    })
}

/// Sends, waits for the end of it, and says how long it took.
async fn run(
    load: &Load,
    side: BenchSide,
    pace: SendPace,
    tally: &Arc<LoadTally>,
) -> Result<Duration, String> {
    let pool = match side {
        BenchSide::Floor => None,
        BenchSide::Pool => Some(load.pool(tally).await.map_err(|error| error.to_string())?),
    };
    let sender = |index| Sender {
        index,
        to: match &pool {
            None => To::Itself(load.handler(tally, index)),
            Some(pool) => To::Pool(pool.address()),
        },
        tally: tally.clone(),
        keys: load.keys.clone(),
        length: load.length,
        senders: load.senders as u64,
    };
    let start = |index| match pace {
        SendPace::Unpaced => tokio::spawn(sender(index).unpaced()),
        SendPace::At(rate) => {
            let chance = Chance::new(load.seed.wrapping_add(index as u64));
            let (rate, runtime) = (rate / load.senders as f64, Handle::current());
            let sender = sender(index);
            tokio::task::spawn_blocking(move || sender.paced(rate, chance, &runtime))
        }
    };
    let sending: Vec<_> = (0..load.senders).map(start).collect();
    for sender in sending {
        sender.await.map_err(|error| error.to_string())??;
    }
    if let Some(pool) = pool {
        let left = pool.stop(Stop::within(DRAIN)).await.left_over.len();
        if left > 0 {
            return Err(format!(
                "{left} messages were not handled {} s after the last was sent",
                DRAIN.as_secs()
            ));
        }
    }
    Ok(tally.started.elapsed())
}

/// Who sends.
struct Sender {
    index: usize,
    to: To,
    tally: Arc<LoadTally>,
    keys: Keys,
    length: Duration,
    /// How many there are: each takes every so many-th key.
    senders: u64,
}

impl Sender {
    async fn send(&self, nth: u64, due: Duration) -> Result<(), String> {
        let seq = nth * self.senders + self.index as u64;
        self.to.send(Message::new(self.keys.of(seq), seq, due)).await?;
        self.tally.sent[self.index].add();
        Ok(())
    }

    /// As fast as it goes.
    async fn unpaced(self) -> Result<(), String> {
        for nth in (0..).step_by(RUN) {
            if self.tally.started.elapsed() >= self.length {
                break;
            }
            for nth in nth..nth + RUN as u64 {
                self.send(nth, Duration::ZERO).await?;
            }
            // Without an engine nothing else would give the thread away.
            tokio::task::consume_budget().await;
        }
        Ok(())
    }

    /// When each is due, by Poisson's law; on a thread that may sleep. Ends after twice its time,
    /// where that is too often for this machine.
    fn paced(self, rate: f64, mut chance: Chance, runtime: &Handle) -> Result<(), String> {
        let mut due = Duration::ZERO;
        for nth in 0.. {
            due += Duration::from_secs_f64(-(1.0 - chance.unit()).ln() / rate);
            if due >= self.length || self.tally.started.elapsed() >= 2 * self.length {
                break;
            }
            while let Some(left) = due.checked_sub(self.tally.started.elapsed()) {
                thread::sleep(left);
            }
            // Zero would mean that nobody asks for it.
            runtime.block_on(self.send(nth, due.max(Duration::from_nanos(1))))?;
        }
        Ok(())
    }
}

/// Keeps the most messages that are in flight, until the future is dropped.
async fn sample(tally: &LoadTally, peak: &AtomicU64) {
    let mut ticks = progress::ticks(SAMPLE);
    loop {
        peak.fetch_max(tally.in_flight(), Relaxed);
        ticks.tick().await;
    }
}

/// On a terminal, says what is being measured.
async fn show(side: BenchSide, pace: SendPace, load: &Load, tally: &LoadTally) {
    if !io::stderr().is_terminal() {
        std::future::pending::<()>().await;
    }
    let what = match pace {
        SendPace::Unpaced => "as fast as it goes".to_owned(),
        SendPace::At(rate) => format!("{} a second", grouped(rate.round() as u64)),
    };
    progress::text(|| {
        format!(
            "{}, {what}: {:.1} s of {}, {} messages",
            side.name(),
            tally.started.elapsed().as_secs_f64(),
            seconds(load.length.as_secs_f64()),
            grouped(tally.handled())
        )
    })
    .await;
}
