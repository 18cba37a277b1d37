//! The state of a letter.

use std::fmt;

spelled! {
    as_str:
    /// The state of a letter.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum State {
        /// It is in the store.
        Stored = "stored",
        /// It is to be replayed.
        Marked = "marked",
        /// It is being replayed.
        Handed = "in_replay",
    }
}

impl State {
    pub(super) fn from_number(number: i64) -> Self {
        match number {
            1 => Self::Marked,
            2 => Self::Handed,
            _ => Self::Stored,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
