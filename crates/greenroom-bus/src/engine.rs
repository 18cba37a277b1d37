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

mod attempt;
mod beside;
mod brake;
mod budget;
mod builder;
mod change;
mod commits;
mod config;
mod control;
mod depths;
mod emit;
mod ending;
mod entries;
mod failures;
mod input;
mod inputs;
mod intake;
mod job;
mod judge;
mod ledger;
mod letters;
mod log_limit;
mod look;
mod loopback;
mod managed;
mod order_audit;
mod outage;
mod outputs;
mod parked;
mod parts;
mod phase;
mod pools;
pub(crate) mod produced;
mod report;
mod returning;
mod routing;
mod run;
mod shared;
mod shares;
pub(crate) mod standalone;
mod standstill;
mod tasks;
mod ticket;
mod tries;
mod waiting;
mod worker;

pub use self::{
    budget::{InputConfig, InputView},
    builder::EngineBuilder,
    change::ChangeError,
    config::{BuildError, NoHandler, OutageConfig},
    control::{Control, HandlerControl, NotAdded, PoolControl, Removal},
    failures::{FailedEvent, OnFailure},
    look::{Decided, Decision, HandlerView, HotView, KeyView, ParkedView, PoolView},
    loopback::LoopbackConfig,
    outage::OutageView,
    parts::Engine,
    phase::Phase,
    report::{
        InputReport, OutputReport, PoolReport, PositionsReport, Progress, RunReport, SlowKey,
    },
};
/// How the pools and handlers of an engine are declared, as those of a router.
pub use crate::router::{
    AckWhen, Concurrency, DEFAULT_POOL, HandlerConfig, OnFull, PoolConfig, Retry,
};
