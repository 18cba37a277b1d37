//! One path from arrivals to a target: a keyed pool, or channels chosen by hash.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use greenroom::{Backoff, Stop};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use super::{arrivals::Arrivals, ledger::LedgerCounts, target::Target};
use crate::commands::trial::{Arrival, Trial};

/// Workers of the pool, and tasks of the other side.
pub(super) const WORKERS: usize = 16;
/// How long the last messages may take.
const DRAIN: Duration = Duration::from_secs(60);
/// Messages that may wait for each worker.
const MAILBOX: usize = 1_000;
/// Enough that no message of the demo is ever given up.
const ATTEMPTS: u32 = 1_000;
/// Between two attempts.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(5), Duration::from_millis(100));

/// The part between arrivals and target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SideKind {
    /// A pool of greenroom, ordered by key.
    Lanes,
    /// The same with a flaky target.
    Flaky { seed: u64 },
    /// A channel and a task for each worker, chosen by the key's hash.
    Hashing,
}

/// A path and its results.
pub(super) struct Side {
    kind: SideKind,
    /// Its end.
    pub(super) target: Arc<Target>,
    /// Messages accepted.
    sent: AtomicU64,
    started: Instant,
}

impl Side {
    pub(super) fn new(kind: SideKind, started: Instant) -> Self {
        let flaky = match kind {
            SideKind::Flaky { seed } => Some(seed),
            SideKind::Lanes | SideKind::Hashing => None,
        };
        let target = Arc::new(Target::new(flaky, started));
        Self { kind, target, sent: AtomicU64::new(0), started }
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            SideKind::Lanes | SideKind::Flaky { .. } => "lanes",
            SideKind::Hashing => "hashing",
        }
    }

    /// Messages accepted so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// The target's counts; read when all is over.
    pub(super) fn counts(&self) -> LedgerCounts {
        self.target.ledger.close(self.sent())
    }

    /// The most messages that can have been repeated.
    pub(super) fn repeated_at_most(&self) -> u64 {
        self.target.unheard.load(Relaxed)
    }

    /// The defects that were found.
    pub(super) fn defects(&self) -> Vec<String> {
        let LedgerCounts { lost, out_of_order, repeated, .. } = self.counts();
        let unexpected = repeated.saturating_sub(self.repeated_at_most());
        let found = [(lost, "lost"), (out_of_order, "out of order"), (unexpected, "repeated")];
        let found = found.into_iter().filter(|(count, _)| *count > 0);
        found.map(|(count, what)| format!("{}: {count} {what}", self.name())).collect()
    }

    /// Sends everything at its due time, and waits until all of it has been handled.
    pub(super) async fn play(&self, arrivals: &Arrivals) -> Result<(), String> {
        match self.kind {
            SideKind::Lanes | SideKind::Flaky { .. } => self.through_lanes(arrivals).await,
            SideKind::Hashing => self.through_hashing(arrivals).await,
        }
    }

    async fn through_lanes(&self, arrivals: &Arrivals) -> Result<(), String> {
        let pool = Trial::pool(self.target.clone()).name("demo");
        let pool = pool.workers(WORKERS).mailbox(MAILBOX).retry(ATTEMPTS, BACKOFF);
        let pool = pool.spawn().await.map_err(|error| error.to_string())?;
        for arrival in &arrivals.all {
            self.wait_for(arrival).await;
            pool.send(*arrival).await.map_err(|error| error.to_string())?;
            self.sent.fetch_add(1, Relaxed);
        }
        match pool.stop(Stop::within(DRAIN)).await.left_over.len() {
            0 => Ok(()),
            left => Err(format!("lanes: {left} messages were not handled in time")),
        }
    }

    async fn through_hashing(&self, arrivals: &Arrivals) -> Result<(), String> {
        let (senders, tasks): (Vec<_>, Vec<_>) =
            (0..WORKERS).map(|_| task(self.target.clone())).unzip();
        for arrival in &arrivals.all {
            self.wait_for(arrival).await;
            senders[worker_of(arrival.key.unwrap_or_default())]
                .send(*arrival)
                .await
                .map_err(|error| error.to_string())?;
            self.sent.fetch_add(1, Relaxed);
        }
        drop(senders);
        let ended = async {
            for task in tasks {
                task.await.map_err(|error| error.to_string())?;
            }
            Ok(())
        };
        let ended = timeout(DRAIN, ended).await;
        ended.unwrap_or_else(|_| Err("hashing: messages were not handled in time".to_owned()))
    }

    async fn wait_for(&self, arrival: &Arrival) {
        sleep_until(self.started + arrival.due).await;
    }
}

/// The worker of a key with hashing; the same in every run, so that a run can be repeated.
pub(super) fn worker_of(key: u32) -> usize {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key) as usize % WORKERS
}

/// A task that handles the messages of its channel, one after the other.
fn task(target: Arc<Target>) -> (mpsc::Sender<Arrival>, tokio::task::JoinHandle<()>) {
    let (sender, mut inbox) = mpsc::channel(MAILBOX);
    let task = tokio::spawn(async move {
        while let Some(arrival) = inbox.recv().await {
            // Only the pool's target is flaky.
            let _ = target.deliver(arrival).await;
        }
    });
    (sender, task)
}
