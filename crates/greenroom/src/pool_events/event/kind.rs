//! The kinds of events.

use super::PoolEvent;

macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $name:literal,)+) => {
        /// An event without its figures: for counters and their names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])+ $kind,)+
        }

        impl Kind {
            /// All there are.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// Its name, for labels and logs; it does not change.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }

        impl PoolEvent {
            /// Its kind: the event without its figures.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$kind { .. } => Kind::$kind,)+
                }
            }
        }
    };
}

kinds! {
    /// A pool started.
    Started = "started",
    /// A pool stopped.
    Stopped = "stopped",
    /// A worker started.
    WorkerStarted = "worker_started",
    /// A worker was added.
    WorkerAdded = "worker_added",
    /// A worker was removed.
    WorkerRemoved = "worker_removed",
    /// A worker was restarted.
    WorkerRestarted = "worker_restarted",
    /// A worker could not be started.
    StartFailed = "start_failed",
    /// A slot has used up its restarts.
    BudgetExceeded = "budget_exceeded",
    /// A slot was disabled.
    WorkerDisabled = "worker_disabled",
    /// A slot was enabled again.
    WorkerEnabled = "worker_enabled",
    /// A worker does not release a message.
    WorkerWedged = "worker_wedged",
    /// A failure was passed to the supervisor above.
    Escalated = "escalated",
    /// A message became a dead letter.
    DeadLetter = "dead_letter",
    /// A mailbox is full.
    MailboxFull = "mailbox_full",
    /// A mailbox that was full has room again.
    MailboxDrained = "mailbox_drained",
    /// Messages were dropped because there was no room.
    DroppedByOverflow = "dropped_by_overflow",
    /// Waiting messages were withdrawn.
    Withdrawn = "withdrawn",
    /// The size of a pool changes.
    Resized = "resized",
    /// The capacity of a pool changes.
    CapacityChanged = "capacity_changed",
    /// There is new advice.
    Advised = "advised",
    /// A limit has changed.
    LimitChanged = "limit_changed",
    /// Keys wait for a worker that is to hand them over.
    SlotHeld = "slot_held",
    /// A key waits for an operator.
    KeyParked = "key_parked",
    /// A key continues.
    KeyReleased = "key_released",
    /// Memory use is above the ceiling.
    MemoryAboveCeiling = "memory_above_ceiling",
}
