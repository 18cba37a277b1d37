//! Why a running engine was not changed.

use greenroom::pool::AdminError;

/// Why a running engine was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no pool of this name.
    #[error("there is no pool {name:?}; there are: {known}")]
    NoSuchPool {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// There is no handler of this name.
    #[error("there is no handler {name:?}; there are: {known}")]
    NoSuchHandler {
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// There is no input or output of this name.
    #[error("there is no {kind} {name:?}; there are: {known}")]
    NoSuchEnd {
        /// Its kind: `input` or `output`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The existing names.
        known: String,
    },
    /// An input or output of this name is there, or was removed and is not done.
    #[error(
        "there is an {kind} {name:?} already{}",
        if *leaving { ", which was removed and is not done: try again later" } else { "" }
    )]
    NameTaken {
        /// Its kind: `input` or `output`.
        kind: &'static str,
        /// The name.
        name: String,
        /// True if it was removed and some of its events are not settled yet.
        leaving: bool,
    },
    /// The engine was told to stop, every input has ended, or it is over.
    #[error("inputs and outputs cannot change any more: the engine drains, or is over")]
    Ending,
    /// This can only be set before the engine starts.
    #[error("{what} cannot change while the engine runs: stop it and start it anew")]
    AlreadyStarted {
        /// The setting, for example `pools.erp.engine`.
        what: String,
    },
    /// The pool refused it.
    #[error("the pool {pool:?} was not changed: {error}")]
    Refused {
        /// Its name.
        pool: String,
        /// Why.
        error: AdminError,
    },
    /// A value that cannot be used.
    #[error("{what} cannot be used: {why}")]
    Unusable {
        /// The setting, for example `handlers.push.retry.attempts`.
        what: String,
        /// The permitted values.
        why: String,
    },
}

impl ChangeError {
    pub(crate) fn already_started(what: String) -> Self {
        Self::AlreadyStarted { what }
    }
}

/// The two kinds of parts that can be added and removed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PortKind {
    Input,
    Output,
}

impl PortKind {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }

    pub(crate) fn usable(self, name: &str) -> Result<(), ChangeError> {
        if !name.is_empty() {
            return Ok(());
        }
        let what = format!("the name of an {}", self.name());
        Err(ChangeError::Unusable { what, why: "it is empty".to_owned() })
    }

    pub(crate) fn name_taken(self, name: &str, leaving: bool) -> ChangeError {
        ChangeError::NameTaken { kind: self.name(), name: name.to_owned(), leaving }
    }

    pub(crate) fn unknown(self, name: &str, known: String) -> ChangeError {
        ChangeError::NoSuchEnd { kind: self.name(), name: name.to_owned(), known }
    }
}

/// The existing names, for an error.
pub(crate) fn known<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
