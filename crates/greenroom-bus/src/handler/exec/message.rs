//! Messages from workers to the driver of a process, and its answers.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::handler::{Attempt, HandlerResult};

/// An event that a worker has handed in.
#[derive(Debug)]
pub(super) struct WorkerJob {
    /// Its line, but for the token with which that begins.
    pub(super) line: Vec<u8>,
    pub(super) attempt: Attempt,
    /// Closed once the worker's attempt is cancelled.
    pub(super) answer: oneshot::Sender<Answer>,
}

/// The outcome of an event, and the memory of its line.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) result: HandlerResult,
    pub(super) line: Vec<u8>,
}

/// A message to the driver of a process.
#[derive(Debug)]
pub(super) enum DriverMessage {
    Job(WorkerJob),
    /// An attempt is cancelled: the answer of one job is closed.
    Cancelled,
    /// No event comes any more.
    Stop(Stop),
}

/// Asks the process to finish.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) patience: Duration,
    /// Closed once it is gone.
    pub(super) done: oneshot::Sender<()>,
}
