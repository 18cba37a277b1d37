//! The outcome of redriving letters from a topic or a stream to their origin. Each connector
//! redrives its own.

use std::{collections::BTreeMap, fmt::Display};

use crate::source::{InputKind, InputSetup};

/// At most this many of the letters that stay are named.
const NAMED: usize = 10;

/// Which letters are sent back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LetterChoice {
    /// Only letters of this reason, such as `retries_exhausted`.
    pub reason: Option<String>,
    /// Only letters of this handler.
    pub handler: Option<String>,
    /// Only letters of this input.
    pub input: Option<String>,
    /// The most letters to send.
    pub limit: Option<u64>,
    /// Counts what would be sent, and changes nothing.
    pub counts_only: bool,
    /// The consumer group that remembers which letters are done, if there is one.
    pub group: Option<String>,
}

impl LetterChoice {
    /// Whether a letter is chosen. `says` is asked whether its `reason`, `handler` or `input` is
    /// this one.
    pub fn takes(&self, says: impl Fn(&str, &str) -> bool) -> bool {
        let asked = [("reason", &self.reason), ("handler", &self.handler), ("input", &self.input)];
        let is_so = |(what, wanted): &(&str, &Option<String>)| {
            wanted.as_deref().is_none_or(|wanted| says(what, wanted))
        };
        asked.iter().all(is_so)
    }
}

/// An input that letters may have come through: its options, and what it is opened with.
pub type InputOfLetters<'a> = (&'a dyn InputKind, InputSetup);

/// The outcome of redriving letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Redriven {
    /// How many were sent and stored, or would be sent, by destination topic or stream.
    pub published: BTreeMap<String, u64>,
    /// How many were not selected, and stay.
    pub passed_over: u64,
    /// How many stay because they cannot be sent.
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
