//! The engine: inputs, a router, named pools, outputs, and a report that adds up.
//!
//! ```text
//! source ──▶ intake ──▶ router ──▶ pool (its own workers, queue, order) ──▶ handler ──▶ output ──▶ settled
//!              │                     ▲                                         │
//!              └─ waits beside a     └── a retry waits in its key's line       └──▶ dead letters ──▶ settled
//!                 full pool
//! ```
//!
//! An event is settled only when its outcome is stored: its handler's results are in the output, or
//! the event is in the dead letters. All other events are refused, and the report counts them.

mod account;
mod config;
mod control;
mod egress;
mod intake;
pub(crate) mod lifecycle;
pub(crate) mod process;
mod shared;

pub use self::{
    account::report::{
        InputReport, OutputReport, PoolReport, PositionsReport, Progress, RunReport, SlowKey,
    },
    config::{BuildError, Finish, NoHandler, OutageConfig, OutagePer},
    control::{
        ChangeError, Control, Decided, Decision, HandlerControl, HandlerView, HotView, KeyInHand,
        KeyPartition, KeyView, LedgerView, LongestLine, NotAdded, OtherEvent, OutputView,
        ParkedView, PausedShare, PoolControl, PoolSharesControl, PoolView, Removal, WorkerView,
    },
    egress::dead_letters::ToldLetter,
    intake::{
        budget::InputConfig,
        held_by::HeldByShare,
        view::{InputView, PartitionView},
    },
    lifecycle::{builder::EngineBuilder, engine::Engine, phase::Phase},
    process::{
        attempt_figures::{AttemptTimes, AttemptsSnapshot},
        circuit::{OutageCause, OutageView},
        failures::{FailedEvent, OnFailure},
        loopback::LoopbackConfig,
        parked::ParkedEvent,
        retries::RetryClass,
    },
};
// The pools and handlers of an engine are declared as those of a router.
#[doc(inline)]
pub use crate::router::{
    AckWhen, Concurrency, DEFAULT_POOL, HandlerConfig, OnFull, PoolConfig, Retry,
};
