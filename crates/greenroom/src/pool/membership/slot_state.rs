//! A slot of a pool: the state that stays when its worker is restarted, disabled, or replaced.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use greenroom_queue::lock::Mutex;
use greenroom_queue::stamp::Stamp;
use tokio::task::AbortHandle;

use super::{adopted_member::AdoptedMember, restart::RestartLog};
use crate::inspect::{Published, WorkerStatus};
use crate::pool::{admin::change::Outcomes, stats::counters::WorkerCounters};

/// The worker is to end after the message in hand.
pub(crate) const LEAVE: u32 = 1;

/// The worker's own mailbox has messages.
pub(crate) const MAIL: u32 = 2;

/// The worker's own mailbox has signals.
pub(crate) const SIGNAL: u32 = 4;

/// The worker is to report when it has nothing in hand: others wait for its keys.
pub(crate) const HAND_OVER: u32 = 32;

/// The worker is to end after the message in hand; its slot rests until the supervisor
/// starts it again.
pub(crate) const REST: u32 = 16;

/// The pool has ended: nothing more is started.
pub(crate) const END: u32 = 64;

/// The worker has been killed: its task ends at its next await, or when it looks at its orders,
/// whichever comes first.
pub(crate) const KILLED: u32 = 8;

/// Used instead of the start time of a message for which the clock was not read.
const UNKNOWN: u64 = u64::MAX;

/// A slot. Its first cache line belongs to the worker, which writes it for every message. The field
/// order matters: what each message needs is in that line.
#[derive(Default)]
#[repr(C, align(128))]
pub(crate) struct SlotState {
    /// The orders that the worker checks before its next message: [`LEAVE`], [`MAIL`], [`SIGNAL`],
    /// [`REST`], [`KILLED`], [`HAND_OVER`], [`END`].
    orders: AtomicU32,
    /// The number of the last attempt in hand that was not a first one; `attempt_of` says of which
    /// message.
    pub(crate) attempt: AtomicU32,
    pub(crate) counters: WorkerCounters,
    pub(crate) attempt_of: AtomicU64,
    pub(crate) details: Mutex<SlotDetails>,
    /// The number of tasks started for its workers, so that a late handle is recognized as that of
    /// an earlier task.
    pub(crate) tasks: AtomicU64,
    /// The values that the worker has published.
    pub(crate) published: Published,
}

/// The rare part of a slot's state.
#[derive(Default)]
pub(crate) struct SlotDetails {
    pub(crate) status: Status,
    /// The keeper was notified that the worker is up, and not that it is down.
    pub(crate) up: bool,
    /// Its start was reported since the slot was taken.
    pub(crate) told_started: bool,
    /// Drops what the worker runs, at its next await.
    pub(crate) abort: Option<AbortHandle>,
    /// The actor or pool that it hands messages to, if it was adopted.
    pub(crate) adopted: Option<AdoptedMember>,
    /// It leaves by itself, because the adopted actor or pool has stopped.
    pub(crate) drops_out: bool,
    /// It was told to rest, was busy for too long, and no longer counts as live.
    pub(crate) given_up: bool,
    /// Notified when the worker has left.
    pub(crate) on_left: Option<Outcomes>,
    /// The number of restarts since a worker took the slot.
    pub(crate) lives: u32,
    /// Its restarts, for its budget.
    pub(crate) restarts: RestartLog,
}

/// The state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Status {
    /// No worker. Left when a worker is hired.
    #[default]
    Vacant,
    /// A worker that is being built, for the first time or again. Left by its start, its budget, or
    /// an order to leave.
    Starting,
    /// A worker that handles messages. Left by its death, its budget, or an order to leave.
    Live,
    /// No worker until it is enabled: its budget was used up. Left by `enable`, or by removal.
    Disabled,
    /// A worker that ends after the message in hand. Left when it has gone.
    Leaving,
}

impl Status {
    /// Its public form; `None` for a vacant slot.
    pub(crate) fn as_public(self) -> Option<WorkerStatus> {
        match self {
            Self::Vacant => None,
            Self::Starting => Some(WorkerStatus::Starting),
            Self::Live => Some(WorkerStatus::Live),
            Self::Disabled => Some(WorkerStatus::Disabled),
            Self::Leaving => Some(WorkerStatus::Leaving),
        }
    }
}

impl_debug!([] SlotState, |_|);

impl SlotState {
    /// True if the worker should check its orders. Costs a load from its own cache line.
    #[inline]
    pub(crate) fn has_orders(&self) -> bool {
        self.orders.load(Ordering::Relaxed) != 0
    }

    /// True if the worker is to leave its slot, or to rest.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.has(LEAVE | REST)
    }

    /// True if the worker may start no further message.
    pub(crate) fn starts_nothing(&self) -> bool {
        self.has(LEAVE | REST | KILLED)
    }

    pub(crate) fn has(&self, order: u32) -> bool {
        // Pairs with the `fetch_or` in `order`: an order is given before `over` is notified, and a
        // worker listens before it checks. Otherwise it would sleep through the order.
        self.orders.load(Ordering::SeqCst) & order != 0
    }

    pub(crate) fn order(&self, order: u32) {
        // Pairs with the load in `has_orders` of a worker that parks, through the fences in
        // `Wake::call` and `pass_on`: the caller finds the worker in the idle list, or the worker
        // sees the order. Otherwise it would sleep through the order.
        self.orders.fetch_or(order, Ordering::SeqCst);
    }

    /// The slot is vacant: clears the orders of its last worker, except the pool's end.
    pub(crate) fn forget_orders(&self) {
        // Pairs with `order`, by being one step: an `END` that comes in between stays. The caller
        // holds the lock of the slot's details, under which a worker is killed.
        self.orders.fetch_and(END, Ordering::SeqCst);
    }

    pub(crate) fn done(&self, order: u32) {
        // Pairs with `order`, by being one step: other orders that come in between stay. A caller
        // that could meet the same order holds the lock under which it is given.
        self.orders.fetch_and(!order, Ordering::SeqCst);
    }

    pub(crate) fn status(&self) -> Status {
        self.details.lock().status
    }

    /// True while a message is in hand.
    pub(crate) fn is_busy(&self) -> bool {
        self.counters.in_hand.load(Ordering::Relaxed) != 0
    }

    /// A message has been in hand since this moment.
    #[inline]
    pub(crate) fn set_busy_since(&self, nanos: u64) {
        self.counters.in_hand.store(nanos + 1, Ordering::Relaxed);
    }

    /// A message is in hand, and the clock was not read for it.
    #[inline]
    pub(crate) fn set_busy_since_now(&self) {
        self.counters.in_hand.store(UNKNOWN, Ordering::Relaxed);
    }

    /// No message is in hand any more.
    #[inline]
    pub(crate) fn set_free(&self) {
        self.counters.in_hand.store(0, Ordering::Relaxed);
    }

    /// Notes that this attempt of a message, not the first, is in hand.
    pub(crate) fn note_attempt(&self, attempt: u32) {
        self.attempt.store(attempt, Ordering::Relaxed);
        self.attempt_of.store(self.counters.started.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The number of the attempt that is in hand, or was last.
    pub(crate) fn attempt(&self) -> u32 {
        let noted = self.attempt_of.load(Ordering::Relaxed);
        match noted != 0 && noted == self.counters.started.load(Ordering::Relaxed) {
            true => self.attempt.load(Ordering::Relaxed),
            false => 1,
        }
    }

    /// When the message in hand was started. If the clock was not read for it, this is the time of
    /// the first call: `real` reads the clock.
    pub(crate) fn busy_since(&self, real: impl FnOnce() -> u64) -> Option<Stamp> {
        let in_hand = &self.counters.in_hand;
        let mut since = in_hand.load(Ordering::Relaxed);
        if since == UNKNOWN {
            let now = real() + 1;
            let order = Ordering::Relaxed;
            since =
                in_hand.compare_exchange(UNKNOWN, now, order, order).map_or_else(|by| by, |_| now);
        }
        since.checked_sub(1).map(Stamp::coarse)
    }

    /// Counts this many messages in hand besides the first.
    pub(crate) fn add_messages(&self, messages: u64) {
        let more = self.counters.more_in_hand.load(Ordering::Relaxed);
        self.counters.more_in_hand.store(more + messages, Ordering::Relaxed);
    }

    /// The next of them takes the place of the first.
    pub(crate) fn remove_message(&self) {
        let more = self.counters.more_in_hand.load(Ordering::Relaxed);
        self.counters.more_in_hand.store(more.saturating_sub(1), Ordering::Relaxed);
    }
}
