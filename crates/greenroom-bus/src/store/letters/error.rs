//! Errors of a store of dead letters.

use std::path::Path;

use crate::store::sqlite::{Failed, NotOpened, error_text};

/// Why a store of dead letters cannot fulfil a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LetterError {
    /// It cannot be opened.
    #[error("letters:{path}: {reason}")]
    NotOpened {
        /// The directory.
        path: String,
        /// The error, and the next step.
        reason: String,
        /// Another process writes it.
        is_held: bool,
    },
    /// It cannot be read or changed.
    #[error("{0}")]
    Failed(String),
    /// There is no room for the change: nothing was changed.
    #[error("{0}")]
    Full(String),
    /// It was closed, because the run ends.
    #[error("the store of dead letters is closed")]
    Closed,
    /// There is no such letter.
    #[error("there is no dead letter {0}")]
    NoLetter(u64),
    /// The mask hides some of it.
    #[error("the mask of the store hides some of the dead letter {0}, so it is not edited here")]
    Masked(u64),
    /// It is being replayed.
    #[error("the dead letter {0} is being replayed: it can be changed if that fails")]
    InReplay(u64),
    /// There is no such replay.
    #[error("there is no replay {0}")]
    NoReplay(u64),
}

impl LetterError {
    pub(super) fn not_opened(path: &Path, error: NotOpened) -> Self {
        let NotOpened { reason, is_held } = error;
        Self::NotOpened { path: path.display().to_string(), reason, is_held }
    }
}

impl From<rusqlite::Error> for LetterError {
    fn from(error: rusqlite::Error) -> Self {
        match Failed::classify(&error) {
            Failed::Full => Self::Full(error_text(&error)),
            Failed::Busy | Failed::ForGood => Self::Failed(error_text(&error)),
        }
    }
}
