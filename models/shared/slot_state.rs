//! What the product's mailbox knows of a worker's slot: orders, as in the product, and what is
//! counted there.

use greenroom_queue::sync::{AtomicU32, AtomicU64, Ordering};

use crate::pool::stats::counters::WorkerCounters;

pub(crate) const LEAVE: u32 = 1;
pub(crate) const MAIL: u32 = 2;
pub(crate) const SIGNAL: u32 = 4;
pub(crate) const KILLED: u32 = 8;
/// The pool has ended.
pub(crate) const END: u32 = 64;
/// Ordered in sticky pools, of which there is none here.
pub(crate) const HAND_OVER: u32 = 32;

#[derive(Default)]
pub(crate) struct SlotState {
    /// Not looked at by other threads.
    counters: WorkerCounters,
    orders: AtomicU32,
    /// Messages that have their outcome, where a stop looks for that.
    pub(crate) settled: AtomicU64,
    /// Messages started.
    pub(crate) started: AtomicU64,
}

impl SlotState {
    pub(crate) fn has_orders(&self) -> bool {
        self.orders.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn has(&self, order: u32) -> bool {
        self.orders.load(Ordering::SeqCst) & order != 0
    }

    pub(crate) fn order(&self, order: u32) {
        self.orders.fetch_or(order, Ordering::SeqCst);
    }

    pub(crate) fn forget_orders(&self) {
        self.orders.fetch_and(END, Ordering::SeqCst);
    }

    pub(crate) fn done(&self, order: u32) {
        self.orders.fetch_and(!order, Ordering::SeqCst);
    }

    /// No supervisor tells it to rest.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.has(LEAVE)
    }

    pub(crate) fn starts_nothing(&self) -> bool {
        self.has(LEAVE | KILLED)
    }

    /// No time passes here.
    pub(crate) fn set_busy_since(&self, nanos: u64) {
        self.counters.in_hand.store(nanos + 1, Ordering::Relaxed);
    }

    pub(crate) fn set_free(&self) {
        self.counters.in_hand.store(0, Ordering::Relaxed);
    }

    /// The clock is read for every message.
    #[expect(clippy::unused_self, reason = "as in the product")]
    pub(crate) fn busy_since(&self, _real: impl FnOnce()) {}

    pub(crate) fn is_busy(&self) -> bool {
        self.counters.in_hand.load(Ordering::Relaxed) != 0
    }
}
