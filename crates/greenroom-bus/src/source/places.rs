//! Where an item stood, for sources that read several things one after the other.

use std::sync::Arc;

/// Tells positions of a source by what it reads there: dead letters and errors name the file and
/// the line, whatever the source counts.
pub trait Places: Send + Sync + 'static {
    /// Where the item with this position stood.
    fn place(&self, position: u64) -> Place;
}

/// A position in one of the things that a source reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What that is called, for example `file:orders.ndjson`.
    pub source: Arc<str>,
    /// The position within it.
    pub position: u64,
}
