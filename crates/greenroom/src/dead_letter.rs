//! A message that a pool could not handle, passed to the program.

use std::time::Duration;

use greenroom_config::words;

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

words! {
    /// Why a message became a dead letter.
    #[non_exhaustive]
    pub enum DeadLetterReason {
        /// Its handler failed, and the policy makes no further attempt.
        Failed = "failed",
        /// Its handler panicked, and the policy makes no further attempt.
        Panicked = "panicked",
        /// It killed as many workers as the poison limit allows.
        Poisoned = "poisoned",
        /// It was a call, and its caller was gone before it was handled.
        Abandoned = "abandoned",
        /// Its worker was killed while it handled the message, and the policy makes no further
        /// attempt; or its handler was dropped at the deadline of a stop, and had consumed the
        /// message.
        Killed = "killed",
        /// No worker was left to handle it, or none of the
        /// [adopted](crate::PoolAdmin::adopt) ones takes it.
        NoWorkers = "no_workers",
        /// It had to make room for a later message.
        Evicted = "evicted",
        /// Its deadline passed before it was started.
        Expired = "expired",
        /// Its handler did not return within the pool's limit, and the policy makes no further
        /// attempt.
        TimedOut = "timed_out",
    }
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
