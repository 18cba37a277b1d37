//! Which delivery of an event it is.

use greenroom_bus::{source::Partition, watermark::Epoch};

/// Which delivery of an event a handler has in hand: a [local
/// value](greenroom_bus::event::Event::local) of each event that a [`Broker`](super::Broker) gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The partition that it came from.
    pub partition: Partition,
    /// The assignment of that partition.
    pub epoch: Epoch,
    /// Its place in the partition's log.
    pub position: u64,
}
