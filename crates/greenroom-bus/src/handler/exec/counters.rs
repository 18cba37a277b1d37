//! Counters shared by the workers of one program.

use std::sync::atomic::{AtomicU64, AtomicUsize};

use super::{crashes::Crashes, standing::ProgramStanding};

/// Counters of the processes of one factory, all workers together.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Starts that replaced a process which crashed or was killed.
    pub(super) restarts: AtomicU64,
    /// Processes that died, or broke the protocol and were killed for it.
    pub(super) crashes: Crashes,
    /// Processes that ended with code 0 and nothing in hand.
    pub(super) recycles: AtomicU64,
    /// Processes that ended without an answer, may have read the event, and were followed by
    /// another within the attempt.
    pub(super) unanswered: AtomicU64,
    /// Processes that run.
    pub(super) running: AtomicUsize,
    pub(super) standing: ProgramStanding,
}
