//! The reason for which an idle worker is woken.

use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// The idle slot of a worker.
pub(super) struct IdleSlot {
    /// The shard that the worker was woken for, with the affinity to it, or [`ANY`]. Written under
    /// the lock of the idle list.
    pub(super) wake_reason: AtomicU32,
    /// The worker is in the idle list. Written under the list's lock.
    pub(super) is_listed: AtomicBool,
}

impl Default for IdleSlot {
    fn default() -> Self {
        Self { wake_reason: AtomicU32::new(ANY), is_listed: AtomicBool::new(false) }
    }
}

impl IdleSlot {
    /// The wake reason of the worker, which has been taken off the idle list.
    #[inline]
    pub(super) fn take_wake_reason(&self) -> WakeReason {
        // Its writer has taken the worker off the list. No other writer does before it is listed
        // again.
        let of = match self.wake_reason.load(Ordering::Relaxed) {
            ANY => return WakeReason::Any,
            HANDED => WakeReason::Handed,
            shard => WakeReason::Shard(shard as usize),
        };
        self.wake_reason.store(ANY, Ordering::Relaxed);
        of
    }
}

/// Held by a worker from when it parks until it is unparked: whether the idle list has the waker of
/// its current task.
pub enum ParkToken {
    /// The list has no waker yet, or the worker may have moved to another task.
    Unknown,
    /// The worker has just given its waker.
    Told,
}

/// Woken for no particular shard, and to join others in theirs.
pub(super) const ANY: u32 = u32::MAX;

/// Woken for a message that it was handed.
pub(super) const HANDED: u32 = u32::MAX - 1;

/// The reason for which a worker was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// Work in any shard.
    Any,
    /// Work in this shard, with the affinity to it.
    Shard(usize),
    /// A message that a caller has handed to it.
    Handed,
}
