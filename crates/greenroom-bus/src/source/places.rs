//! The place of an item, for sources that read several things.

use std::sync::Arc;

use super::partition::Partition;

/// Translates positions of a source into places: dead letters and errors name the file and the
/// line, or the partition of a topic, whatever the source counts.
pub trait Places: Send + Sync + 'static {
    /// The place of the item with this position of this partition. A source without partitions has
    /// [one](Partition::ONLY); `None` if it was revoked and is not known any more.
    fn place(&self, partition: Option<Partition>, position: u64) -> Place;
}

/// A position in one of the things that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its name, for example `file:orders.ndjson` or `kafka:orders/7`.
    pub source: Arc<str>,
    /// The position within it.
    pub position: u64,
}
