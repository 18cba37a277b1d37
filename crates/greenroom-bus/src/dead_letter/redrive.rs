//! What became of letters of a topic or a stream that were to go back to where they came from. Each
//! connector redrives its own.

use std::{collections::BTreeMap, fmt::Display};

/// So many letters that stay are named.
const NAMED: usize = 10;

/// What became of the letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Redriven {
    /// So many were sent and stored, or would be sent, by the topics or streams that they went to.
    pub published: BTreeMap<String, u64>,
    /// So many were not chosen, and stay.
    pub passed_over: u64,
    /// So many stay because they cannot be sent.
    pub left: u64,
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

    /// A letter was sent there, or would be.
    pub fn is_published(&mut self, to: &str) {
        match self.published.get_mut(to) {
            Some(count) => *count += 1,
            None => _ = self.published.insert(to.to_owned(), 1),
        }
    }

    /// A letter cannot be sent.
    pub fn stays(&mut self, letter: impl Display, why: &str) {
        self.left += 1;
        if self.left_because.len() < NAMED {
            self.left_because.push(format!("{letter}: {why}"));
        }
    }
}

/// Redriving could not continue. Letters that were handled before stay handled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RedriveError(pub String);

impl From<String> for RedriveError {
    fn from(why: String) -> Self {
        Self(why)
    }
}
