//! Whether a sender waits.

/// Whether a sender could let others run before its message is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It could.
    CanStepAside,
    /// It does not wait.
    Now,
    /// It waits for the reply, and may do the worker's work in that time.
    InPlace,
}
