//! The options of a head-of-line guard.

use std::time::Duration;

use greenroom_config::{count, defaults_beside, duration, options, text, units::DAY_MS};

options! {
    /// If a commit is more than 90% full, and at least 98% of its offsets are done, the oldest open
    /// events are published to a topic unchanged, with headers that say where they were, and are
    /// settled. They leave the order of their key, and may be handled twice.
    #[derive(Eq)]
    pub struct GuardOptions = "guard" {
        /// The topic that they are moved to.
        topic: String = text();
        /// How many may be moved within `every`. Further stuck events hold up their partition.
        events: u64 = count(1..=1_000_000_000).default("1000");
        /// The period for `events`.
        every: Duration = duration(1..=DAY_MS).default("1h");
    }
}

impl GuardOptions {
    /// To this topic, at most 1,000 events an hour. Each record has headers that say where it was:
    /// `greenroom_topic`, `greenroom_partition`, `greenroom_offset`, and `greenroom_reason`, which
    /// is `head_of_line` (F08).
    pub fn new(topic: impl Into<String>) -> Self {
        Self { topic: topic.into(), ..defaults_beside(&[("topic", "topic")]) }
    }

    /// # Errors
    /// An option that cannot be used.
    #[cfg(feature = "client")]
    pub(crate) fn check(&self) -> Result<(), String> {
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
