//! The state of a letter.

use std::fmt;

/// The state of a letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is in the store.
    Stored = 0,
    /// It is to be replayed.
    Marked = 1,
    /// It is being replayed.
    Handed = 2,
}

impl State {
    pub(super) fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Marked,
            2 => Self::Handed,
            _ => Self::Stored,
        }
    }

    /// The spelling in lists and exports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Marked => "marked",
            Self::Handed => "in_replay",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
