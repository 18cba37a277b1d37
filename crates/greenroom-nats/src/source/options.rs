//! What to read, and how.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{record::Mapping, source::StartAt};

use crate::key::NatsKey;

/// Where a filter and the name of a consumer have the number of a partition.
pub(super) const PARTITION: &str = "{partition}";

/// What a source reads, and how.
#[derive(Debug, Clone)]
pub struct NatsSourceOptions {
    /// The stream. It has to exist.
    pub stream: String,
    /// The durable consumer. It is made where it does not exist, and what it has delivered and
    /// heard acknowledged is what a restart goes on with. One process reads it at a time.
    pub consumer: String,
    /// Only messages with these subjects, which may have wildcards. Default: all of the stream.
    /// A consumer that exists is changed to them.
    pub filters: Vec<String>,
    /// Partitions that this process reads, each by a consumer of its own: the name of the consumer
    /// gets the number behind a dash, and `{partition}` in `filters` becomes it. Default: none, so
    /// that the consumer is the only partition.
    pub partitions: Vec<u32>,
    /// Where a consumer begins that does not exist yet. Default: [`StartAt::Earliest`].
    pub start: StartAt,
    /// So many messages of a consumer are delivered and not acknowledged at most; as many as all
    /// pools that take its events, and the input itself, may hold. Set as the consumer's
    /// `max_ack_pending`. At least 1; default: 10,000.
    pub capacity: usize,
    /// So many messages are asked for at a time, at least 1; default: 500.
    pub batch: usize,
    /// Of so many bytes together; a larger message is asked for alone. Default: 8 MiB.
    pub batch_bytes: usize,
    /// The server delivers a message again of which it hears nothing for so long; it hears of what
    /// is in hand before half of that. At least 200 ms; default: 30 s. It is also how long the
    /// start after a crash waits for what the one before had in hand.
    pub ack_wait: Duration,
    /// So many bytes are held back at most while older messages are waited for. Default: 64 MiB.
    pub hold_bytes: usize,
    /// Where the key of a message comes from, if not from the event itself.
    pub key: Option<NatsKey>,
    /// The rule for messages that are no CloudEvents. Default: they are CloudEvents, in binary or
    /// structured mode.
    pub records: Option<Arc<Mapping>>,
}

impl NatsSourceOptions {
    /// This consumer of this stream, with the defaults.
    pub fn new(stream: impl Into<String>, consumer: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            consumer: consumer.into(),
            filters: Vec::new(),
            partitions: Vec::new(),
            start: StartAt::default(),
            capacity: 10_000,
            batch: 500,
            batch_bytes: 8 * 1024 * 1024,
            ack_wait: Duration::from_secs(30),
            hold_bytes: 64 * 1024 * 1024,
            key: None,
            records: None,
        }
    }

    /// What is wrong with them, in words for an operator.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_name = |name: &str| {
            let bad = |c: char| c.is_whitespace() || c.is_control() || ".*>/\\".contains(c);
            !name.is_empty() && !name.contains(bad)
        };
        if !is_name(&self.stream) {
            return Err(format!(
                "{:?} is no name of a stream: it has no dots, spaces or wildcards",
                self.stream
            ));
        }
        if !is_name(&self.consumer) {
            return Err(format!(
                "{:?} is no name of a consumer: it has no dots, spaces or wildcards",
                self.consumer
            ));
        }
        if self.capacity == 0 || self.batch == 0 || self.batch_bytes == 0 {
            return Err("`capacity`, `batch` and `batch_bytes` are at least 1".to_owned());
        }
        if self.ack_wait < Duration::from_millis(200) {
            return Err("`ack_wait` is at least 200 ms".to_owned());
        }
        let has_place = self.filters.iter().any(|filter| filter.contains(PARTITION));
        if has_place == self.partitions.is_empty() {
            return Err(format!(
                "`partitions` and a filter with `{PARTITION}` belong together: each partition is read by a consumer of its own"
            ));
        }
        Ok(())
    }
}
