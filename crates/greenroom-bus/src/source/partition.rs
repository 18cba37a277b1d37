//! A part of a source that has an order, positions and an owner of its own.

use std::fmt;

/// A partition of a source, by a number that the source gives it. A source that has
/// no parts is one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Partition(pub u32);

impl Partition {
    /// The one of a source that has no parts.
    pub const ONLY: Self = Self(0);
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
