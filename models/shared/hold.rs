//! What the product's core knows of who holds a message: its types, without what settles it.

use super::lanes::LaneId;
use crate::{Actor, delivery::Delivery};

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// As in the product.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    None,
    Shared { index: usize, alone: bool },
    Attending { index: usize, alone: bool },
    Head { index: usize, epoch: u64, hash: Option<u32>, run: u32 },
    Desk,
    Lane { index: usize, id: LaneId, run: u32 },
}
