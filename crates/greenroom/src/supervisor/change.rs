//! A change that was begun.

use std::{fmt, time::Duration};

use tokio::{sync::oneshot, time::timeout_at};

use super::{child::ChildId, error::ChangeError};
use crate::pool::clock::timed::later;

/// A change to the children of a supervisor that has begun, and goes on even if
/// this is not awaited.
#[must_use = "the change goes on; this tells what it came to"]
pub struct Change<T> {
    id: ChildId,
    outcome: oneshot::Receiver<Result<T, ChangeError>>,
    /// Kept, to be told again.
    settled: Option<Result<T, ChangeError>>,
}

impl<T: Clone> Change<T> {
    pub(crate) fn new(id: ChildId) -> (Self, oneshot::Sender<Result<T, ChangeError>>) {
        let (sender, outcome) = oneshot::channel();
        (Self { id, outcome, settled: None }, sender)
    }

    /// The child that it is about.
    pub fn id(&self) -> ChildId {
        self.id
    }

    /// Waits for its end, at most this long. May be asked again.
    ///
    /// # Errors
    /// It is still under way, or has failed.
    ///
    /// # Cancel safety
    /// The change goes on, and can be asked again.
    pub async fn done(&mut self, within: Duration) -> Result<T, ChangeError> {
        if let Some(settled) = &self.settled {
            return settled.clone();
        }
        let ended = timeout_at(later(within), &mut self.outcome).await;
        let outcome = ended.map_err(|_| ChangeError::UnderWay)?;
        let outcome = outcome.unwrap_or(Err(ChangeError::Overtaken));
        self.settled.insert(outcome).clone()
    }
}

impl<T> fmt::Debug for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").field("id", &self.id).finish_non_exhaustive()
    }
}
