//! The engine, built and not yet run.

use std::{sync::Arc, time::Duration};

use greenroom::Pool;
use tokio::sync::watch;

use super::{ending::Ending, phase::Phase};
use crate::engine::{
    control::Control,
    process::{managed::Managed, worker::BusWorker},
    shared::Shared,
};

/// A running set of pools with its inputs and outputs. Built by [`Engine::builder`], used
/// up by [`run`](Self::run).
///
/// ```
/// use std::sync::Arc;
///
/// use greenroom_bus::{
///     dead_letter::file::FileDeadLetterStore,
///     engine::{Engine, HandlerConfig, PoolConfig},
///     handler::pass::PassFactory,
///     source::generator::{GeneratorOptions, GeneratorSource},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("dead-letters.ndjson");
/// let options = GeneratorOptions { count: Some(100), ..GeneratorOptions::default() };
/// let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(PassFactory));
/// handler.order_by = Some("subject".parse()?); // one event of a subject at a time, in order
/// let engine = Engine::builder()
///     .input(Box::new(GeneratorSource::new(options)?))
///     .pool("default", PoolConfig { workers: 8, ..PoolConfig::default() })
///     .handler("pass", handler)
///     .dead_letters(Arc::new(FileDeadLetterStore::open(path)?))
///     .build()
///     .await?;
/// let control = engine.control(); // for example `control.drain()` when a signal comes
/// let report = engine.run().await;
/// assert_eq!((report.taken, report.handled, report.out_of_order), (100, 100, 0));
/// assert!(report.adds_up() && report.is_clean());
/// assert_eq!(control.progress().settled, 100);
/// # Ok(()) }
/// ```
pub struct Engine {
    pub(crate) parts: Parts,
}

/// A pool of the engine, which its run and its stop hold.
pub(crate) type SharedPool = Arc<Pool<BusWorker>>;

/// An engine without its inputs: the parts that a run observes while the inputs are read elsewhere.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    /// In the order of their settings.
    pub(crate) pools: Vec<SharedPool>,
    /// The same, for control handles that change them while they run.
    pub(crate) managed: Arc<[Managed]>,
    pub(crate) deadline: Duration,
    pub(crate) outage_limit: Duration,
    pub(crate) phase: watch::Sender<Phase>,
    /// When dropped, it releases everyone that waits for an order that will not be carried out.
    pub(crate) _ending: Ending,
}

impl Engine {
    /// To look at the engine while it runs, and to stop it.
    pub fn control(&self) -> Control {
        self.parts.control()
    }
}

impl Parts {
    pub(crate) fn control(&self) -> Control {
        Control {
            shared: self.shared.clone(),
            phase: self.phase.clone(),
            managed: self.managed.clone(),
        }
    }

    /// Gives up the events of given-up assignments that wait in pools and on the loopback.
    pub(crate) fn give_up_waiting(&self) {
        let revocations = &self.shared.inputs.revocations;
        if !revocations.any() {
            return;
        }
        if let Some(loopback) = &self.shared.loopback {
            loopback.withdraw(|assigned| revocations.has(assigned));
        }
        for managed in &*self.managed {
            managed.admin.withdraw(|job| revocations.has(job.origin.assigned));
        }
    }
}
