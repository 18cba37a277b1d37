//! Why a log cannot be opened or read.

use std::{fmt, io, path::PathBuf};

/// A log that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Options that contradict each other.
    #[error("{0}")]
    Options(String),
    /// Another process has it.
    #[error(
        "{}: the log is in use: {by}; wait for its end, or name another directory",
        directory.display()
    )]
    InUse {
        /// The directory of the log.
        directory: PathBuf,
        /// The process that writes it.
        by: String,
    },
    /// A file or directory cannot be read or written.
    #[error("{}: {error}; check the path, its permissions and the free space", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Data that was durable has changed.
    #[error(
        "{0}; nothing was changed. Restore the directory from a backup; or look with `greenroom store check`, save what is \
         readable with `greenroom store export`, and start with an empty directory"
    )]
    Damaged(Damage),
    /// A later version has written it.
    #[error(
        "{}: it was written by a later version of greenroom (form {form}, this one knows up to {known}): run that version",
        path.display()
    )]
    Later {
        /// Which file.
        path: PathBuf,
        /// The form that it has.
        form: u32,
        /// The last form that is known here.
        known: u32,
    },
    /// The request for a consumer cannot be fulfilled.
    #[error("the consumer `{name}` of the log {reason}")]
    Consumer {
        /// Its name.
        name: String,
        /// The problem, and the next step.
        reason: String,
    },
}

impl LogError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}

/// The place where a log is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// In which file.
    pub file: PathBuf,
    /// From which byte of it on.
    pub offset: u64,
    /// The sequence number of the first event that is concerned.
    pub sequence: u64,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, sequence, what } = self;
        let file = file.display();
        write!(f, "{file}: damaged at byte {offset}, from event {sequence} on: {what}")
    }
}
