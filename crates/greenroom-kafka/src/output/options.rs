//! What a Kafka output is told.

use greenroom_bus::event::OrderBy;

use crate::{client::Properties, kinds::KafkaSinkMode};

/// Where to publish, and how.
#[derive(Debug, Clone)]
pub struct KafkaSinkOptions {
    /// Brokers to begin with, `HOST:PORT,HOST:PORT`.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// The key of a record. Default, `None`: the extension `partitionkey`, which is the key that
    /// the event came with, as the bytes that it was; without one its subject; without that, none.
    pub key: Option<OrderBy>,
    /// How an event is written. Default: binary.
    pub mode: KafkaSinkMode,
    /// Any property of librdkafka that is not set by these options: TLS, SASL, `compression.type`,
    /// `linger.ms`, `message.max.bytes`, `partitioner` (here `murmur2_random` unless it is set, as
    /// clients of Java choose).
    pub properties: Properties,
}

impl KafkaSinkOptions {
    /// To this topic, in binary mode.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: topic.into(),
            key: None,
            mode: KafkaSinkMode::Binary,
            properties: Properties::default(),
        }
    }

    /// # Errors
    /// What is missing.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.brokers.trim().is_empty() {
            return Err("`brokers` is empty; name at least one, as HOST:PORT".to_owned());
        }
        if self.topic.trim().is_empty() {
            return Err("`topic` is empty; name the topic to publish to".to_owned());
        }
        Ok(())
    }
}
