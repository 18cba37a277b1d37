//! The list form of letters, and of groups of them.

use greenroom_config::words;
use serde::Serialize;

/// The list form of a letter: not the data of its event, which may be large or private. Long texts
/// are cut. Times are RFC 3339 in UTC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "they are the fields of a letter, which the file store documents")]
pub struct Summary {
    /// The number of the letter in its store, which is not used again.
    pub number: u64,
    /// `stored`, `marked` or `in_replay`.
    pub state: &'static str,
    pub id: Option<String>,
    pub r#type: Option<String>,
    pub subject: Option<String>,
    pub key: Option<String>,
    pub share: Option<String>,
    /// That of its event's `traceparent`; absent from letters that an earlier version has stored.
    pub trace_id: Option<String>,
    /// Its bytes are no event.
    pub raw: bool,
    pub reason: String,
    /// The group of its error.
    pub group: String,
    pub error: String,
    pub attempts: u64,
    pub first_at: String,
    pub last_at: String,
    pub input: String,
    pub source: String,
    pub position: u64,
    pub pool: Option<String>,
    pub handler: Option<String>,
    /// The outputs that rejected a result of it, and why.
    pub rejected_by: Vec<RejectedBy>,
    /// How often it was replayed and has failed again.
    pub replays: u64,
    /// How often its event was edited.
    pub edited: u64,
    /// Why it could not be replayed, if so.
    pub refused: Option<String>,
    pub bytes: u64,
}

/// An output that rejected something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct RejectedBy {
    /// Its name.
    pub output: String,
    /// Its error.
    pub error: String,
}

words! {
    /// The property that letters are counted by.
    pub enum By {
        /// The group of their error.
        Group = "group",
        /// Their reason.
        Reason = "reason",
        /// The handler that they were for.
        Handler = "handler",
    }
}

impl By {
    pub(super) fn column(self) -> &'static str {
        match self {
            Self::Group => "grp",
            Self::Reason => "reason",
            Self::Handler => "handler",
        }
    }
}

/// Letters that have something in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// The common value: a group, a reason or a handler; `None`: they had no handler.
    pub name: Option<String>,
    /// How many there are.
    pub letters: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first of them was given up.
    pub first: String,
    /// When the last of them was.
    pub last: String,
    /// The reason of the newest.
    pub reason: String,
    /// The handler of the newest.
    pub handler: Option<String>,
    /// The error of the newest.
    pub error: String,
}

/// How many letters there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// All of them.
    pub letters: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that wait for their replay.
    pub marked: u64,
    /// Those that an engine has.
    pub in_replay: u64,
    /// The number of the newest; 0 if there is none.
    pub newest: u64,
    /// How many were removed so far because of `retention`.
    pub removed: u64,
}
