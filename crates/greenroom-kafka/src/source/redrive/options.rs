//! What a redrive is told.

use greenroom_bus::dead_letter::redrive::{LetterChoice, RedriveError};

use super::super::options::KafkaSourceOptions;
use crate::{
    client::Properties,
    marks::{self, Marks},
};

/// The group that remembers which letters are done, unless another is chosen.
const GROUP: &str = "greenroom-redrive";

/// Which letters are sent back, and where to.
#[derive(Debug, Clone, PartialEq)]
pub struct RedriveOptions {
    /// The brokers that have the letters.
    pub brokers: String,
    /// The topic of the letters.
    pub topic: String,
    /// Any property of librdkafka: TLS, SASL.
    pub properties: Properties,
    /// The inputs that letters have come by, by name: their records go back to the brokers that
    /// these read from, and a letter of another input stays. Default: none, all records go to
    /// [`brokers`](Self::brokers).
    pub inputs: Vec<(String, KafkaSourceOptions)>,
    /// Which letters.
    pub choice: LetterChoice,
}

impl RedriveOptions {
    /// All letters of this topic.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: topic.into(),
            properties: Properties::default(),
            inputs: Vec::new(),
            choice: LetterChoice::default(),
        }
    }

    pub(super) fn group(&self) -> &str {
        self.choice.group.as_deref().unwrap_or(GROUP)
    }

    /// As those of a source that reads the letters.
    pub(super) fn source(&self) -> KafkaSourceOptions {
        let source = KafkaSourceOptions::new(&self.brokers, self.group(), [&self.topic]);
        KafkaSourceOptions { properties: self.properties.clone(), ..source }
    }

    /// # Errors
    /// What is missing.
    pub(super) fn check(&self) -> Result<(), RedriveError> {
        if self.topic.starts_with('^') {
            return Err(RedriveError("letters lie in one topic, and not in a pattern".to_owned()));
        }
        Ok(self.source().check()?)
    }

    pub(super) fn takes(&self, marks: &Marks) -> bool {
        let asked = [
            (marks::REASON, &self.choice.reason),
            (marks::HANDLER, &self.choice.handler),
            (marks::INPUT, &self.choice.input),
        ];
        asked.iter().all(|(name, wanted)| {
            wanted.as_deref().is_none_or(|wanted| marks.get(name) == Some(wanted))
        })
    }
}
