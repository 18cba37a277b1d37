//! What an idle worker is woken for.

use crate::sync::{AtomicBool, AtomicU32, Ordering};

/// The idle slot of a worker.
pub(super) struct IdleSlot {
    /// Which shard it was woken for, with the affinity to it; or [`ANY`]. Written under the lock of
    /// the idle list.
    pub(super) wake_reason: AtomicU32,
    /// The worker is in the idle list. Written under its lock.
    pub(super) is_listed: AtomicBool,
}

impl Default for IdleSlot {
    fn default() -> Self {
        Self { wake_reason: AtomicU32::new(ANY), is_listed: AtomicBool::new(false) }
    }
}

impl IdleSlot {
    /// What the worker, which has been taken off the idle list, was woken for.
    #[inline]
    pub(super) fn take_wake_reason(&self) -> WakeReason {
        // Its writer has taken the worker off the list, and no other does before it is there again.
        let of = match self.wake_reason.load(Ordering::Relaxed) {
            ANY => return WakeReason::Any,
            HANDED => WakeReason::Handed,
            shard => WakeReason::Shard(shard as usize),
        };
        self.wake_reason.store(ANY, Ordering::Relaxed);
        of
    }
}

/// Of a worker, from when it parks until it is unparked: whether the waker that takes it off the
/// idle list wakes its task.
pub enum ParkToken {
    /// Not yet, or it may be another task by now.
    Unknown,
    /// Yes: it has just given its waker.
    Told,
}

/// Woken for no shard in particular, and to join others in theirs.
pub(super) const ANY: u32 = u32::MAX;

/// Woken for a message that it was handed.
pub(super) const HANDED: u32 = u32::MAX - 1;

/// What a worker was woken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeReason {
    /// Work, wherever it is.
    Any,
    /// It has the affinity to this one.
    Shard(usize),
    /// A message that a caller has handed it.
    Handed,
}
