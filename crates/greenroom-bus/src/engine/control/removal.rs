//! What is common to inputs and outputs that come and go while the engine runs.

use std::{error::Error, fmt};

use super::ChangeError;
use crate::BoxFuture;

/// What comes and goes.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum Kind {
    Input,
    Output,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }

    pub(in crate::engine) fn usable(self, name: &str) -> Result<(), ChangeError> {
        if !name.is_empty() {
            return Ok(());
        }
        let what = format!("the name of an {}", self.name());
        Err(ChangeError::Unusable { what, why: "it is empty".to_owned() })
    }

    pub(in crate::engine) fn name_taken(self, name: &str, leaving: bool) -> ChangeError {
        ChangeError::NameTaken { kind: self.name(), name: name.to_owned(), leaving }
    }

    pub(in crate::engine) fn unknown(self, name: &str, known: String) -> ChangeError {
        ChangeError::NoSuchEnd { kind: self.name(), name: name.to_owned(), known }
    }
}

/// The names of those that there are, for an error.
pub(in crate::engine) fn known<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// An input or output that was not added, and why. It is given back.
#[non_exhaustive]
pub struct NotAdded<P> {
    /// Why.
    pub why: ChangeError,
    /// What was not added.
    pub part: P,
}

impl<P> NotAdded<P> {
    pub(super) fn new(why: ChangeError, part: P) -> Self {
        Self { why, part }
    }
}

impl<P> fmt::Debug for NotAdded<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotAdded").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<P> fmt::Display for NotAdded<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl<P> Error for NotAdded<P> {}

/// An input or output that was told to go. It goes whether this is kept or dropped.
pub struct Removal<T> {
    done: BoxFuture<'static, T>,
}

impl<T> Removal<T> {
    pub(super) fn new(done: impl Future<Output = T> + Send + 'static) -> Self {
        Self { done: Box::pin(done) }
    }

    /// Waits until it is gone, and says what it was.
    ///
    /// # Cancel safety
    /// A dropped future changes nothing: it goes all the same.
    pub async fn done(self) -> T {
        self.done.await
    }
}

impl<T> fmt::Debug for Removal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Removal").finish_non_exhaustive()
    }
}
