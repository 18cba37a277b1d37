//! How far a stop has come.

/// The phases of an engine's life. They only move forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Inputs are read. Left by `drain` and `stop_now`, or when every input has ended.
    Run,
    /// Nothing more is read; events in hand are handled within the deadline, and so are those that
    /// their input cannot deliver again. Left by `stop_now`.
    Drain,
    /// Handlers are dropped at their next await, and all remaining events are refused.
    Now,
}
