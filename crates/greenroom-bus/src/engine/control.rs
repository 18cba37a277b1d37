//! Controls a running engine: its progress, its pools and handlers, its end (R02).
//!
//! | while it runs | only before it starts |
//! |---|---|
//! | a pool's workers, queue, advisor, rate and fixed concurrency limit, also where it has none or is to have none; pause and resume | pools and handlers added or removed |
//! | a handler's retries; pause and resume | the order of events, the pool of a handler, what a handler is for |
//!
//! Inputs and outputs can be added and removed while it runs (G01). An engine stays up while at
//! least one input reads, so to replace an input, add the new one first. Once the last input has
//! ended, or the engine was told to stop, an addition is given back with [`ChangeError::Ending`].
//!
//! The partitions of an input can be paused and drained one by one (D15).
//!
//! A change of anything else is refused with [`ChangeError::AlreadyStarted`], which names it.
//! Nothing has changed then.

mod apply;
pub(crate) mod change;
mod decide;
mod figures;
mod handle;
mod handler;
mod input;
mod look;
mod output;
mod partition;
mod pool;
mod removal;

pub use {
    change::ChangeError,
    decide::{Decided, Decision, OtherEvent},
    figures::LedgerView,
    handle::Control,
    handler::HandlerControl,
    look::{HandlerView, HotView, KeyPartition, KeyView, ParkedView, PoolView},
    output::OutputView,
    pool::{KeyInHand, LongestLine, PausedShare, PoolControl, PoolSharesControl, WorkerView},
    removal::{NotAdded, Removal},
};
