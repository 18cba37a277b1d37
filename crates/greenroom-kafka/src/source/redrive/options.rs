//! What a redrive is told, and what it says.

use std::collections::BTreeMap;

use super::super::options::KafkaSourceOptions;
use crate::{
    client::Properties,
    marks::{self, Marks},
    place::Place,
};

/// The group that remembers which letters are done.
const GROUP: &str = "greenroom-redrive";

/// So many letters that stay are named.
const NAMED: usize = 10;

/// Which letters are sent back, and where to.
#[derive(Debug, Clone, PartialEq)]
pub struct RedriveOptions {
    /// The brokers that have the letters.
    pub brokers: String,
    /// The topic of the letters.
    pub topic: String,
    /// Any property of librdkafka: TLS, SASL.
    pub properties: Properties,
    /// The consumer group that remembers what is done. Default: `greenroom-redrive`.
    pub group: String,
    /// The inputs that letters have come by, by name: their records go back to the brokers that
    /// these read from, and a letter of another input stays. Default: none, all records go to
    /// [`brokers`](Self::brokers).
    pub inputs: Vec<(String, KafkaSourceOptions)>,
    /// Only letters of this reason, such as `retries_exhausted`.
    pub reason: Option<String>,
    /// Only letters of this handler.
    pub handler: Option<String>,
    /// Only letters of this input.
    pub input: Option<String>,
    /// At most so many.
    pub limit: Option<u64>,
    /// Counts what would be sent, and sends nothing.
    pub counts_only: bool,
}

impl RedriveOptions {
    /// All letters of this topic.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> Self {
        Self {
            brokers: brokers.into(),
            topic: topic.into(),
            properties: Properties::default(),
            group: GROUP.to_owned(),
            inputs: Vec::new(),
            reason: None,
            handler: None,
            input: None,
            limit: None,
            counts_only: false,
        }
    }

    /// As those of a source that reads the letters.
    pub(super) fn source(&self) -> KafkaSourceOptions {
        let source = KafkaSourceOptions::new(&self.brokers, &self.group, [&self.topic]);
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
            (marks::REASON, &self.reason),
            (marks::HANDLER, &self.handler),
            (marks::INPUT, &self.input),
        ];
        asked.iter().all(|(name, wanted)| {
            wanted.as_deref().is_none_or(|wanted| marks.get(name) == Some(wanted))
        })
    }
}

/// What became of the letters of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Redriven {
    /// So many were sent and stored, or would be sent, by the topics that they went to.
    pub published: BTreeMap<String, u64>,
    /// So many were not asked for, and stay.
    pub passed_over: u64,
    /// So many stay because they cannot be sent.
    pub left: u64,
    /// So many of these were sent, and their topic did not take them.
    pub(super) failed: u64,
    /// Some of those: where they are, and why they stay.
    pub left_because: Vec<String>,
    /// A part of the letters was not looked at: which of them are done would not fit in a commit.
    /// Redrive without a choice makes room.
    pub is_cut_short: bool,
}

impl Redriven {
    /// All that were sent, or would be.
    pub fn count(&self) -> u64 {
        self.published.values().sum()
    }

    pub(super) fn is_published(&mut self, topic: &str) {
        match self.published.get_mut(topic) {
            Some(count) => *count += 1,
            None => _ = self.published.insert(topic.to_owned(), 1),
        }
    }

    pub(super) fn stays(&mut self, place: &Place, offset: u64, why: String) {
        self.left += 1;
        if self.left_because.len() < NAMED {
            self.left_because.push(format!("{place} at offset {offset}: {why}"));
        }
    }

    pub(super) fn fails(&mut self, place: &Place, offset: u64, why: String) {
        self.failed += 1;
        self.stays(place, offset, why);
    }
}

/// Redriving could not go on. What was done before stays done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedriveError(pub(super) String);

impl From<String> for RedriveError {
    fn from(why: String) -> Self {
        Self(why)
    }
}
