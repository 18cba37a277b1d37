//! The common part of inputs and outputs that come and go while the engine runs.

use std::{error::Error, fmt};

use super::change::ChangeError;
use crate::BoxFuture;

/// An input or output that was not added, and why. It is given back.
#[non_exhaustive]
pub struct NotAdded<P> {
    /// Why.
    pub why: ChangeError,
    /// The part that was not added.
    pub part: P,
}

impl<P> NotAdded<P> {
    pub(crate) fn new(why: ChangeError, part: P) -> Self {
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
    pub(crate) fn new(done: impl Future<Output = T> + Send + 'static) -> Self {
        Self { done: Box::pin(done) }
    }

    /// Waits for the end of the removal, and returns its result.
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
