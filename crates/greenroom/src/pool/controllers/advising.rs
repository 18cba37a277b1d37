//! The advice of a pool's advisor.

use crate::control::advisor::Advice;

/// The latest advice, and the identity of the advisor.
#[derive(Debug, Default)]
pub(crate) struct Advising {
    /// The latest advice of the present advisor.
    pub(crate) advice: Option<Box<Advice>>,
    /// How often the pool was given another advisor, or none. A task of an earlier one ends at its
    /// next observation, and reports nothing.
    pub(super) turn: u64,
}
