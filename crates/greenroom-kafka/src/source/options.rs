//! What a Kafka source is told.

use std::time::Duration;

pub use greenroom_bus::source::StartAt;

use crate::{
    client::Properties,
    decode::RecordFormat,
    kept::Kept,
    kinds::{FormerConsumer, GuardOptions},
};

/// What to read, as which group, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct KafkaSourceOptions {
    /// Brokers to begin with, `HOST:PORT,HOST:PORT`.
    pub brokers: String,
    /// The consumer group. Sources of one group share the partitions.
    pub group: String,
    /// Topics; one that begins with `^` is a regular expression, and takes topics that come later
    /// too.
    pub topics: Vec<String>,
    /// Where to begin in a partition of which the group has committed nothing. Default: earliest.
    /// With `Latest`, partitions and topics that come while the source runs are read from their
    /// beginning.
    pub start: StartAt,
    /// What the group was read by before, whose metadata is read when it starts here for the first
    /// time: while none of its partitions has a commit of ours. Default: `None`, such metadata is
    /// ignored.
    pub from: Option<FormerConsumer>,
    /// How records become events. Default: as CloudEvents.
    pub format: RecordFormat,
    /// What goes on with events that are passed on to outputs of Kafka, beside the key. Default:
    /// neither headers nor timestamps.
    pub keeps: Kept,
    /// Whether commits remember what is done beyond the lowest open offset. Without, a crash
    /// repeats everything behind an event that is stuck. Default: true.
    pub remembers_done: bool,
    /// UTF-16 code units that the broker takes beside an offset: its `offset.metadata.max.bytes`.
    /// Default: 4,096, as at the broker.
    pub metadata_limit: usize,
    /// How long what handlers have in hand of a partition that is taken away may take to finish.
    /// The group waits so long, and fetches nothing. Default: 10 s.
    pub drain_budget: Duration,
    /// Moves the oldest events of a partition that is held up by many that are stuck. Default:
    /// `None`, they hold it up.
    pub guard: Option<GuardOptions>,
    /// Any property of librdkafka that is not set by these options: TLS, SASL, `isolation.level`,
    /// `group.protocol`, `group.instance.id`, `max.poll.interval.ms`, fetch sizes.
    pub properties: Properties,
}

impl KafkaSourceOptions {
    /// These topics, from their beginning.
    pub fn new<T: Into<String>>(
        brokers: impl Into<String>,
        group: impl Into<String>,
        topics: impl IntoIterator<Item = T>,
    ) -> Self {
        Self {
            brokers: brokers.into(),
            group: group.into(),
            topics: topics.into_iter().map(Into::into).collect(),
            start: StartAt::Earliest,
            from: None,
            format: RecordFormat::CloudEvents,
            keeps: Kept::default(),
            remembers_done: true,
            metadata_limit: 4_096,
            drain_budget: Duration::from_secs(10),
            guard: None,
            properties: Properties::default(),
        }
    }

    /// What reports, logs and dead letters call the source.
    pub(super) fn name(&self) -> String {
        format!("kafka:{}", self.topics.join(","))
    }

    /// # Errors
    /// What is missing.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_empty = |text: &str| text.trim().is_empty();
        if is_empty(&self.brokers) {
            return Err("`brokers` is empty; name at least one, as HOST:PORT".to_owned());
        }
        if is_empty(&self.group) {
            return Err("`group` is empty; name the consumer group".to_owned());
        }
        if self.topics.is_empty() || self.topics.iter().any(|topic| is_empty(topic)) {
            return Err("`topics` is empty; name at least one topic, or a pattern".to_owned());
        }
        self.guard.as_ref().map_or(Ok(()), GuardOptions::check)
    }
}
