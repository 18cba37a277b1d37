//! Why a source ends before its end.

/// A source that cannot continue.
#[derive(Debug, thiserror::Error)]
#[error("{source_name}: {reason}")]
#[non_exhaustive]
pub struct SourceError {
    /// [`Source::describe`](super::Source::describe).
    pub source_name: String,
    /// The error, and the next step.
    pub reason: String,
}

impl SourceError {
    /// An error of the source with this description.
    pub fn new(source_name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { source_name: source_name.into(), reason: reason.into() }
    }
}
