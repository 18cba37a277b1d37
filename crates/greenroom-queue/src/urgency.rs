//! Whether a sender can wait.

/// Whether a sender can let others run before its message is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// The sender can.
    CanStepAside,
    /// The sender cannot, or it is about to wait for the reply anyway.
    Now,
}
