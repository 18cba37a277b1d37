//! Where an item stood, for sources that read several things.

use std::sync::Arc;

use super::partition::Partition;

/// Translates positions of a source into places: dead letters and errors name the file and the
/// line, or the partition of a topic, whatever the source counts.
pub trait Places: Send + Sync + 'static {
    /// Where the item with this position of this partition stood. A source without parts
    /// has [one partition](Partition::ONLY); `None` where it is not known any more,
    /// because it was taken away.
    fn place(&self, partition: Option<Partition>, position: u64) -> Place;
}

/// A position in one of the things that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What that is called, for example `file:orders.ndjson` or `kafka:orders/7`.
    pub source: Arc<str>,
    /// The position within it.
    pub position: u64,
}
