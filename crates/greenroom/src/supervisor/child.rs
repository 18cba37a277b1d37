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
//! * Each order may come in any state, even if the child was never started or is already down: it
//!   then does the rest.
//! * A supervisor carries out one order at a time for a child. Before it gives another, it drops
//!   the future of the former, and the next order ends whatever that had begun (a start that hangs,
//!   actors that are being started).
//! * A child that is ordered to go down does not report it; a report that crosses with the order is
//!   ignored, and so is a report of an earlier life.
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
    /// Its name in logs and reports.
    fn name(&self) -> Arc<str>;

    /// Starts it: the first time, or again, in place, with its queue kept. `exits` gets its end, if
    /// it ends by itself; that may come before the start has returned.
    fn start(self: Arc<Self>, exits: ExitReporter) -> ChildFuture<Result<(), String>>;

    /// Ends its actors after the message in hand; a handler that is still busy after `patience` is
    /// dropped at its next await. The queue is kept, and the address continues to accept.
    fn suspend(self: Arc<Self>, patience: Duration) -> ChildFuture<()>;

    /// Like `suspend`, but also refuses work with `NoWorkers` until it is started again. Queued
    /// messages become dead letters.
    fn disable(self: Arc<Self>, patience: Duration) -> ChildFuture<()>;

    /// Stops it for good. A second stop may be more urgent than the first, and overtakes it.
    fn stop(self: Arc<Self>, how: Stop) -> ChildFuture<StopSummary>;
}

/// Identifies a child of its supervisor: unique among all that it ever had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChildId(pub(crate) u64);

impl fmt::Display for ChildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reports that a child has ended by itself.
#[derive(Debug)]
pub(crate) struct ChildExit {
    pub(crate) child: ChildId,
    /// The number of its life; the first start's is 1.
    pub(crate) life: u64,
    pub(crate) reason: ExitReason,
}
