//! The interface of a child to its supervisor, and how a child reports its end.
//!
//! ```text
//!              start ──▶ up ──ends by itself──▶ ExitReporter
//! supervisor ─ suspend ─▶ down, keeps its queue, accepts
//!              disable ─▶ down, refuses with `NoWorkers`, until started again
//!              stop ────▶ gone for good, refuses with `Stopped`
//! ```
//!
//! # The contract
//! * Each order may come in any state, also if the child was never started or is down already:
//!   it then does the rest.
//! * A supervisor carries out one order at a time for a child. To give another it drops the future
//!   of the former first, and what that had begun (a start that hangs, actors that are on their
//!   way) is ended by the order that follows.
//! * A child that is told to go down does not report it; a report that crosses with the order is
//!   ignored. A report of an earlier life is ignored too.
//! * A start that fails leaves nothing running. A panic in it counts as a failure.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::{ExitReason, Stop, pool::StopSummary};

pub(crate) type ChildFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Tells the supervisor, once, how a life ended. Never waits. Dropped unused if the child was
/// ordered to go down.
pub(crate) type ExitReporter = Box<dyn FnOnce(ExitReason) + Send>;

/// An actor, a pool or a supervisor, as its supervisor sees it. Its address and its queue outlive
/// every `suspend` and `start`.
pub(crate) trait Child: Send + Sync + 'static {
    /// What logs and reports call it.
    fn name(&self) -> Arc<str>;

    /// Starts it: the first time, or again, in place, with its queue kept. `exits` is told its end,
    /// if it ends by itself; that may come before the start has returned.
    fn start(self: Arc<Self>, exits: ExitReporter) -> ChildFuture<Result<(), String>>;

    /// Ends its actors after the message in hand; a handler that is still busy after `patience` is
    /// dropped at its next await. The queue is kept, and the address goes on accepting.
    fn suspend(self: Arc<Self>, patience: Duration) -> ChildFuture<()>;

    /// As `suspend`, and refuses work with `NoWorkers` until it is started again. Queued messages
    /// become dead letters.
    fn disable(self: Arc<Self>, patience: Duration) -> ChildFuture<()>;

    /// Stops it for good. A second stop may be more urgent than the first, and overtakes it.
    fn stop(self: Arc<Self>, how: Stop) -> ChildFuture<StopSummary>;
}

/// Which child of its supervisor: unique among all that it ever had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildId(pub(crate) u64);

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// That a child has ended by itself.
#[derive(Debug)]
pub(crate) struct ChildExit {
    pub(crate) child: ChildId,
    /// Which of its lives, the first start's being 1.
    pub(crate) life: u64,
    pub(crate) reason: ExitReason,
}
