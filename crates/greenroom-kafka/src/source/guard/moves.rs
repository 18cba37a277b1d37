//! Events that are moved.

use greenroom_bus::{source::Partition, watermark::Epoch};

use crate::place::Place;

/// Events of a partition that are to be moved, or were.
pub(in crate::source) struct Moves {
    pub(in crate::source) number: Partition,
    pub(in crate::source) epoch: Epoch,
    pub(in crate::source) place: Place,
    pub(in crate::source) offsets: Vec<u64>,
    /// The latest time of the records that were read there, in milliseconds.
    pub(in crate::source) latest: i64,
}

/// The result.
pub(in crate::source) struct Moved {
    /// Those that are in the topic for certain.
    pub(in crate::source) moves: Moves,
    /// How many others do not, and why.
    pub(in crate::source) left: u64,
    pub(in crate::source) failed: Option<String>,
}
