//! Whether a sender waits.

/// Whether a sender could let others run before its message is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It could.
    CanStepAside,
    /// It does not, or it is about to wait for the reply.
    Now,
}
