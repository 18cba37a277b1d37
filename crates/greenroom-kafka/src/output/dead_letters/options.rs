//! What a store of dead letters in a topic is told.

use crate::client::Properties;

/// Where dead letters are published.
#[derive(Debug, Clone, PartialEq)]
pub struct KafkaDeadLettersOptions {
    /// Brokers to begin with, `HOST:PORT,HOST:PORT`.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// Any property of librdkafka that is not set by these options: TLS, SASL, `compression.type`.
    pub properties: Properties,
}

impl KafkaDeadLettersOptions {
    /// To this topic.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        let properties = Properties::default();
        Self { brokers: brokers.into(), topic: topic.into(), properties }
    }

    /// # Errors
    /// What is missing.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.brokers.trim().is_empty() {
            return Err("`brokers` is empty; name at least one, as HOST:PORT".to_owned());
        }
        if self.topic.trim().is_empty() {
            return Err("`topic` is empty; name the topic for dead letters".to_owned());
        }
        Ok(())
    }
}
