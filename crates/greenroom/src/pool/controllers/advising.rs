//! What a pool keeps of its advisor.

use crate::control::advisor::Advice;

/// What the advisor of a pool has said, and which one it is.
#[derive(Debug, Default)]
pub(crate) struct Advising {
    /// The last advice of the advisor that the pool has now.
    pub(crate) advice: Option<Box<Advice>>,
    /// How often the pool was given another advisor, or none. A task of an earlier one ends at its
    /// next look, and says nothing.
    pub(super) turn: u64,
}
