//! The identity of a delivery.

use greenroom_bus::{source::Partition, watermark::Epoch};

/// Identifies the delivery that a handler has in hand: a [local
/// value](greenroom_bus::event::Event::local) of each event from a [`Broker`](super::Broker).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    /// The partition that it came from.
    pub partition: Partition,
    /// The assignment of that partition.
    pub epoch: Epoch,
    /// Its place in the partition's log.
    pub position: u64,
}
