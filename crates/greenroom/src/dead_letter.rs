//! A message that a pool could not handle, passed to the program.

use std::time::Duration;

/// A message that was accepted and could not be handled.
#[derive(Debug)]
pub struct DeadLetter<M, E> {
    /// The message. `None` if the handler had taken it: no copy is kept by default (see
    /// [`keep_copies`](crate::PoolBuilder::keep_copies)).
    pub message: Option<M>,
    /// The reason.
    pub reason: DeadLetterReason,
    /// The handler's error, if there is one and no caller got it.
    pub error: Option<E>,
    /// The panic's message, if there was one.
    pub panic: Option<String>,
    /// How many attempts were made.
    pub attempts: u32,
    /// How long before it became a dead letter it had been accepted, to a few milliseconds like
    /// [`Delivery::queued_for`](crate::Delivery::queued_for); known for every message that a pool
    /// could not handle.
    pub age: Option<Duration>,
}

/// Why a message became a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// Its handler failed, and the policy makes no further attempt.
    Failed,
    /// Its handler panicked, and the policy makes no further attempt.
    Panicked,
    /// It killed as many workers as the poison limit allows.
    Poisoned,
    /// It was a call, and its caller was gone before it was handled.
    Abandoned,
    /// Its worker was killed while it handled the message, and the policy makes no further attempt;
    /// or its handler was dropped at the deadline of a stop, and had consumed the message.
    Killed,
    /// No worker was left to handle it, or none of the
    /// [adopted](crate::PoolAdmin::adopt) ones takes it.
    NoWorkers,
    /// It had to make room for a later message.
    Evicted,
    /// Its deadline passed before it was started.
    Expired,
    /// Its handler did not return within the pool's limit, and the policy makes no further attempt.
    TimedOut,
}

impl DeadLetterReason {
    /// All of them, each at the index of its number.
    pub(crate) const ALL: [Self; 9] = [
        Self::Failed,
        Self::Panicked,
        Self::Poisoned,
        Self::Abandoned,
        Self::Killed,
        Self::NoWorkers,
        Self::Evicted,
        Self::Expired,
        Self::TimedOut,
    ];
}

#[cfg(test)]
mod tests {
    use super::DeadLetterReason;

    #[test]
    fn every_reason_has_its_place() {
        for (place, reason) in DeadLetterReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
    }
}
