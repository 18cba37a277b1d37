//! Why no more is sent.

/// Why no more is sent.
#[derive(Debug)]
pub(super) enum Stop {
    /// An event is bad, or a line is none.
    BadEvent(String),
    /// It cannot be sent.
    Failed(String),
}
