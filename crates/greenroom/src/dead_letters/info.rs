//! Information on a letter.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::{DeadLetter, DeadLetterReason};

/// Information on a dead letter, without the message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LetterInfo {
    /// Its number in its queue. Later letters have higher numbers; no number is used twice.
    pub id: u64,
    /// The reason.
    pub reason: DeadLetterReason,
    /// How many attempts were made.
    pub attempts: u32,
    /// The panic's message, if any.
    pub panic: Option<Arc<str>>,
    /// Whether it has a message, which can be replayed. It has none if the handler had taken it and
    /// the pool keeps no [copies](crate::PoolBuilder::keep_copies).
    pub has_message: bool,
    /// The time when it became one, by the calendar.
    pub at: SystemTime,
    /// The time when it became one, by the runtime's clock.
    pub since: Instant,
    /// The age of its message at that time, since its acceptance, if known.
    pub age: Option<Duration>,
}

impl LetterInfo {
    /// Its number is assigned when it is kept.
    pub(super) fn of<M, E>(letter: &DeadLetter<M, E>) -> Self {
        Self {
            id: 0,
            reason: letter.reason,
            attempts: letter.attempts,
            panic: letter.panic.as_deref().map(Arc::from),
            has_message: letter.message.is_some(),
            at: SystemTime::now(),
            since: Instant::now(),
            age: letter.age,
        }
    }
}

/// The result of pushing a letter.
#[derive(Debug)]
#[must_use = "the letter that is given back is dropped here, wherever that is"]
pub struct Kept<M, E> {
    /// Its number. `None` if the queue keeps none: the letter itself is then given back.
    pub id: Option<u64>,
    /// The letter that was removed for it.
    pub dropped: Option<DeadLetter<M, E>>,
}

/// Why a letter is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLetter {
    /// It was removed, replayed or dropped, or there never was one with this number.
    #[error("there is no such dead letter")]
    Unknown,
    /// It is being inspected or replayed.
    #[error("the dead letter is in use")]
    InUse,
}
