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

mod beside;
mod brake;
mod budget;
mod builder;
mod commits;
mod config;
mod control;
mod depths;
mod ending;
mod failures;
mod inputs;
mod intake;
mod ledger;
mod letters;
mod log_limit;
mod look;
mod loopback;
mod order_audit;
mod outage;
mod outputs;
mod parked;
mod phase;
mod report;
mod routing;
mod run;
mod shared;
mod shares;
mod tasks;
mod tries;
mod waiting;
mod worker;

/// What a router that runs without an engine takes from here.
pub(crate) mod internal;

use std::{sync::Arc, time::Duration};

use greenroom::Pool;
use tokio::sync::watch;

pub use budget::{InputConfig, InputView};
pub use builder::EngineBuilder;
pub use config::{
    AckWhen, BuildError, Concurrency, DEFAULT_POOL, HandlerConfig, NoHandler, OnFull, OutageConfig,
    PoolConfig, Retry,
};
pub use control::{ChangeError, Control, HandlerControl, NotAdded, PoolControl, Removal};
pub use failures::{FailedEvent, OnFailure};
pub use look::{
    Decided, Decision, HandlerView, HotView, KeyView, OutageView, ParkedView, PoolView,
};
pub use loopback::LoopbackConfig;
pub use phase::Phase;
pub use report::{
    InputReport, OutputReport, PoolReport, PositionsReport, Progress, RunReport, SlowKey,
};

use self::{control::Managed, ending::Ending, shared::Shared, worker::BusWorker};

/// A running set of pools with its inputs and outputs. Built by [`Engine::builder`], used up by [`run`](Self::run).
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
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    parts: Parts,
}

/// An engine without its inputs: what a run looks at while they are read elsewhere.
pub(crate) struct Parts {
    shared: Arc<Shared>,
    /// In the order of their settings.
    pools: Vec<Arc<Pool<BusWorker>>>,
    /// The same, for those who change them while they run.
    managed: Arc<[Managed]>,
    deadline: Duration,
    outage_limit: Duration,
    phase: watch::Sender<Phase>,
    /// Once it is dropped, nobody waits for what nobody will carry out.
    _ending: Ending,
}

impl Engine {
    /// Starts to set an engine up.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

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
}
