//! The engine: inputs, a router, named pools, outputs, and a report that adds up.
//!
//! ```text
//! source ──▶ intake ──▶ router ──▶ pool (its own workers, queue, order) ──▶ handler ──▶ output ──▶ settled
//!              │                     ▲                                         │
//!              └─ waits beside a     └── a retry waits in its key's line       └──▶ dead letters ──▶ settled
//!                 full pool
//! ```
//!
//! An event is settled only when its outcome is stored: what its handler produced is in the output, or the event is in
//! the dead letters. What is not settled is refused, and the report says how many.

mod builder;
mod config;
mod intake;
mod ledger;
mod letters;
mod order_audit;
mod outage;
mod phase;
mod report;
mod run;
mod shared;
mod tasks;
mod worker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use greenroom::Pool;
use tokio::sync::watch;

pub use builder::EngineBuilder;
pub use config::{
    BuildError, DEFAULT_POOL, HandlerConfig, NoHandler, OnFull, OutageConfig, PoolConfig, Retry,
};
pub use phase::Phase;
pub use report::{OutputReport, PoolReport, Progress, RunReport, SlowKey};

use self::{shared::Shared, worker::BusWorker};
use crate::source::Source;

/// A running set of pools with its inputs and outputs. Built by [`Engine::builder`], used up by [`run`](Self::run).
pub struct Engine {
    shared: Arc<Shared>,
    pools: Vec<Arc<Pool<BusWorker>>>,
    sources: Vec<Box<dyn Source>>,
    deadline: Duration,
    outage_limit: Duration,
    phase: watch::Sender<Phase>,
    /// The part of each input that has been read, in millionths; above that where it is not known.
    read: Vec<Arc<AtomicU64>>,
}

/// Looks at a running engine, and stops it.
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
    phase: watch::Sender<Phase>,
    read: Vec<Arc<AtomicU64>>,
}

impl Control {
    /// Stops the inputs and handles what was taken, within the deadline.
    pub fn drain(&self) {
        self.advance(Phase::Drain);
    }

    /// Drops handlers at their next await and refuses what is left.
    pub fn stop_now(&self) {
        self.advance(Phase::Now);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let forward = *phase < to;
            *phase = to.max(*phase);
            forward
        });
    }

    /// What the run has done so far. Never more settled than taken.
    pub fn progress(&self) -> Progress {
        let ledger = &self.shared.ledger;
        let counts = ledger.counts();
        let read = self.read.iter().map(|read| read.load(Ordering::Relaxed));
        let known = read.clone().all(|read| read <= 1_000_000);
        let mean = read.sum::<u64>() as f64 / (self.read.len().max(1) as f64 * 1e6);
        Progress {
            taken: counts.taken,
            settled: counts.settled(),
            dead_lettered: counts.dead_lettered,
            queued: ledger.queued.load(Ordering::Relaxed),
            read: known.then_some(mean),
        }
    }
}

impl Engine {
    /// Starts to set an engine up.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// To look at the engine while it runs, and to stop it.
    pub fn control(&self) -> Control {
        Control { shared: self.shared.clone(), phase: self.phase.clone(), read: self.read.clone() }
    }
}
