//! What the product's mailbox and its calls in place know of a worker's seat: orders, as in the product, what is counted there,
//! and where its work lies.

use super::{in_place::Bench, tally::WorkerTally};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

pub(crate) const MAIL: u32 = 2;
pub(crate) const SIGNAL: u32 = 4;
pub(crate) const KILLED: u32 = 8;
/// Ordered in sticky pools, of which there is none here.
pub(crate) const HAND_OVER: u32 = 32;

#[derive(Default)]
pub(crate) struct Seat {
    /// Not looked at by other threads.
    tally: WorkerTally,
    orders: AtomicU32,
    /// Messages started.
    pub(crate) started: AtomicU64,
    pub(crate) bench: Bench,
}

impl Seat {
    pub(crate) fn has_orders(&self) -> bool {
        self.orders.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn has(&self, order: u32) -> bool {
        self.orders.load(Ordering::SeqCst) & order != 0
    }

    pub(crate) fn order(&self, order: u32) {
        self.orders.fetch_or(order, Ordering::SeqCst);
    }

    pub(crate) fn done(&self, order: u32) {
        self.orders.fetch_and(!order, Ordering::SeqCst);
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.tally.in_hand.load(Ordering::Relaxed) != 0
    }
}
