//! Why sending ended.

/// Why sending ended.
#[derive(Debug)]
pub(super) enum Stop {
    /// An event is bad, or a line is not an event.
    BadEvent(String),
    /// It cannot be sent.
    Failed(String),
}
