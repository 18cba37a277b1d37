//! The figures of a pool's keys.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::DeadLetterReason;

/// How many keys have messages in hand or waiting, by their state. Messages in a queue behind other
/// keys that can be started as soon as they are reached are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeyCounts {
    /// A message is in hand.
    pub running: usize,
    /// A message waits for its next attempt.
    pub retrying: usize,
    /// They wait for an operator.
    pub parked: usize,
    /// They have yielded to others, and wait for a worker.
    pub ready: usize,
    /// Messages that wait behind all of these.
    pub waiting: usize,
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// Its first message waits in the queue; it only needs its turn.
    Queued,
    /// A message is in hand.
    Running {
        /// The slot of the worker that has it.
        worker: usize,
        /// Since when, to a few milliseconds.
        since: Duration,
    },
    /// A message waits for its next attempt.
    Retrying {
        /// Since its last attempt failed.
        since: Duration,
        /// The time from now, to a few milliseconds.
        next: Duration,
        /// The worker that had it in hand last.
        worker: usize,
    },
    /// It waits for an operator.
    Parked {
        /// Since when.
        since: Duration,
        /// How its message has failed.
        reason: DeadLetterReason,
        /// The worker that had it in hand.
        worker: usize,
    },
    /// It has yielded to others and waits for a worker.
    Ready,
}

/// Why a key waits. The message in hand belongs to the handler and may not be printable, so it is
/// identified by its worker, its attempt and its time; a failed one, by its error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyStatus {
    /// Its state.
    pub state: KeyState,
    /// How many messages wait behind the one that is in hand, retried or parked.
    pub waiting: usize,
    /// The number of its present or last attempt; 0 if there was none.
    pub attempt: u32,
    /// The error of its last attempt.
    pub last_error: Option<String>,
    /// When that failed: it distinguishes this failure of the key from any other.
    pub failed_at: Option<Instant>,
    /// How long the first of the waiting messages has waited.
    pub oldest: Option<Duration>,
}

impl fmt::Display for KeyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waiting; ", self.waiting)?;
        match self.state {
            KeyState::Queued => f.write_str("in the queue")?,
            KeyState::Ready => f.write_str("has given way to others, next in its turn")?,
            KeyState::Running { worker, since } => {
                write!(f, "in hand of worker {worker} for {since:.1?}, attempt {}", self.attempt)?;
            }
            KeyState::Retrying { since, next, .. } => {
                write!(f, "attempt {} failed {since:.1?} ago, next in {next:.1?}", self.attempt)?;
            }
            KeyState::Parked { since, .. } => {
                write!(f, "parked for {since:.1?} after attempt {}", self.attempt)?;
            }
        }
        self.last_error.iter().try_for_each(|error| write!(f, ", last error: {error}"))
    }
}

/// A key that waits for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedKey<K> {
    /// The key.
    pub key: Arc<K>,
    /// How long it has waited.
    pub since: Duration,
    /// How its message has failed.
    pub reason: DeadLetterReason,
    /// The number of messages at its head that were attempted: one, or those of a batch.
    pub attempted: usize,
    /// How many messages wait behind them.
    pub waiting: usize,
}

/// A key whose message a worker has in hand.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInHand<K> {
    /// The slot of the worker.
    pub worker: usize,
    /// The key.
    pub key: Arc<K>,
}

/// The key with the most messages in line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongestLine<K> {
    /// The key. `None` for one that is only in a queue and is not among the hottest.
    pub key: Option<Arc<K>>,
    /// How many messages wait.
    pub messages: usize,
}
