//! Events of pools.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    DeadLetterReason, ExitReason,
    control::{advisor::Advice, autoscale::Reason},
    pool::limits::{LimitReason, Mode},
};

mod kind;

pub use self::kind::Kind;

/// An event, its pool, and its time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PoolEventRecord {
    /// The name of the pool.
    pub pool: Arc<str>,
    /// The time of day.
    pub at: SystemTime,
    /// The event itself.
    pub what: PoolEvent,
}

/// An event for operators. Slots are numbered from 0, like [`Context::slot`](crate::Context::slot).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PoolEvent {
    /// The pool has started.
    Started {
        /// With this many workers.
        workers: usize,
    },
    /// The pool has stopped.
    Stopped {
        /// The reason.
        reason: ExitReason,
    },
    /// A worker has started for the first time.
    WorkerStarted {
        /// Its slot.
        slot: usize,
    },
    /// A worker was added to a running pool.
    WorkerAdded {
        /// Its slot.
        slot: usize,
    },
    /// A worker was removed from a running pool.
    WorkerRemoved {
        /// The slot that it had.
        slot: usize,
    },
    /// A worker was restarted after it had died.
    WorkerRestarted {
        /// Its slot.
        slot: usize,
        /// Restarts of this slot so far, this one included.
        restarts: u32,
        /// Why it had died.
        reason: ExitReason,
    },
    /// A worker could not be started. The pool retries.
    StartFailed {
        /// Its slot.
        slot: usize,
        /// The error.
        error: String,
    },
    /// A slot has used up its restarts. The next event tells the consequence.
    BudgetExceeded {
        /// The slot.
        slot: usize,
    },
    /// A slot has no worker until it is enabled again.
    WorkerDisabled {
        /// The slot.
        slot: usize,
    },
    /// A slot that was disabled has a worker again.
    WorkerEnabled {
        /// The slot.
        slot: usize,
    },
    /// A worker did not release its message when it should have.
    WorkerWedged {
        /// Its slot.
        slot: usize,
        /// How long it has had the message, at least: as long as the pool has observed it.
        busy_for: Duration,
    },
    /// The failure of a slot was passed to the supervisor above.
    Escalated {
        /// The slot.
        slot: usize,
    },
    /// An accepted message could not be handled. A message that had to make room for another is
    /// reported in [`DroppedByOverflow`](Self::DroppedByOverflow) instead.
    DeadLetter {
        /// Its type.
        message_type: &'static str,
        /// The reason.
        reason: DeadLetterReason,
        /// The time since its acceptance, to a few milliseconds, if known.
        age: Option<Duration>,
        /// How many attempts were made.
        attempts: u32,
    },
    /// The mailbox has no room.
    MailboxFull,
    /// The mailbox has room again.
    MailboxDrained {
        /// How long it had none.
        full_for: Duration,
    },
    /// Messages were dropped for lack of room: new arrivals, or the oldest waiting ones. Reported
    /// at most once a second.
    DroppedByOverflow {
        /// How many since the last such notice.
        messages: u64,
    },
    /// Waiting messages were [withdrawn](crate::PoolAdmin::withdraw). Those that are withdrawn one
    /// by one, when they would have been started, are only counted.
    Withdrawn {
        /// How many.
        messages: usize,
    },
    /// The number of workers changes.
    Resized {
        /// The number before.
        from: usize,
        /// The number now.
        to: usize,
        /// The reason.
        reason: ResizeReason,
    },
    /// The number of messages that the pool can hold, accepted but not started, changes. Not
    /// reported if that follows from another size.
    CapacityChanged {
        /// The number before.
        from: usize,
        /// The number now.
        to: usize,
    },
    /// The pool's [advisor](crate::pool::advisor) has new advice.
    Advised {
        /// The advice, and its reason.
        advice: Box<Advice>,
    },
    /// A limit on messages in hand or on their rate has changed.
    LimitChanged {
        /// The limit before.
        from: usize,
        /// The limit now.
        to: usize,
        /// The reason.
        reason: LimitChangeReason,
    },
    /// In a [sticky](crate::pool::sticky) pool, some keys are to move to another worker, but their
    /// worker has had a message of one of them in hand for a second: new messages of these keys
    /// wait. Reported once each time.
    SlotHeld {
        /// The slot of the worker that has the message in hand.
        slot: usize,
        /// How many messages wait for it.
        messages: usize,
        /// For how long so far.
        held_for: Duration,
    },
    /// A key waits for an operator, because a message of it failed for good.
    KeyParked,
    /// A key that waited for an operator continues.
    KeyReleased,
    /// More memory is in use than the ceiling allows. Reported again only after it has fallen well
    /// below.
    MemoryAboveCeiling {
        /// Bytes in use: by the process if known, otherwise by the messages that the pool holds.
        used: u64,
        /// The ceiling.
        ceiling: u64,
        /// The parts that the pool holds, in bytes, the most first: an estimate from counts and the
        /// average size of a message.
        holds: Vec<(Holding, u64)>,
    },
}

/// The places where a pool holds messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holding {
    /// Messages that wait to be started, for the first time or again.
    Queues,
    /// Messages in the line of a parked key.
    Parked,
    /// Dead letters that are kept.
    DeadLetters,
}

/// Why the size of a pool changes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ResizeReason {
    /// An operator requested it.
    Asked,
    /// An adopted actor or pool has ended.
    Left,
    /// The pool sizes itself, for this reason.
    Autoscaled(Reason),
}

/// Why a limit has changed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum LimitChangeReason {
    /// An operator requested it.
    Asked,
    /// The limit adapts itself.
    Adapted {
        /// The reason.
        reason: LimitReason,
        /// Whether it is enforced.
        mode: Mode,
    },
}
