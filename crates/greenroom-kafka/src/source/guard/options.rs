//! What a head-of-line guard is told.

use std::time::Duration;

/// Moves the oldest events of a partition that is held up by events which are stuck (F08).
///
/// Where more than 90% of what a commit can remember is in use, and at least 98% of that is done,
/// the oldest open events are published to a topic as they are, and are settled once the broker has
/// them. A moved event leaves the order of its key, and may be handled twice: by its handler,
/// should that come back, and by the reader of the topic.
///
/// Each record has headers that say where it was: `greenroom_topic`, `greenroom_partition`,
/// `greenroom_offset`, and `greenroom_reason`, which is `head_of_line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardOptions {
    /// Where they are moved to: a topic for retries, or one for dead letters.
    pub topic: String,
    /// At most so many events are moved within [`every`](Self::every). Default: 1,000. What is
    /// stuck beyond that holds its partition up, as without a guard.
    pub events: u64,
    /// Default: one hour.
    pub every: Duration,
}

impl GuardOptions {
    /// To this topic, at most 1,000 events an hour.
    pub fn new(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), events: 1_000, every: Duration::from_secs(3_600) }
    }

    /// # Errors
    /// What cannot be used.
    pub(in crate::source) fn check(&self) -> Result<(), String> {
        if self.topic.trim().is_empty() {
            return Err(
                "the head-of-line guard's `topic` is empty; name the topic that events are \
                        moved to"
                    .to_owned(),
            );
        }
        if self.events == 0 || self.every.is_zero() {
            return Err(
                "the head-of-line guard's budget is nothing; leave the guard out, or let it \
                        move at least one event in some time"
                    .to_owned(),
            );
        }
        Ok(())
    }
}
