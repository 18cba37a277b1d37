//! Why a text is not to be trusted.

/// A text that is not a set of ours, or not for its offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub(super) String);
