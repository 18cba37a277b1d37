//! A change in progress.

use std::time::Duration;

use tokio::{sync::oneshot, time::timeout_at};

use super::{child::ChildId, error::ChangeError};
use crate::pool::clock::timed::later;

/// A change to the children of a supervisor that has begun, and continues even if this is not
/// awaited.
#[must_use = "the change goes on; this tells what it came to"]
pub struct Change<T> {
    id: ChildId,
    outcome: oneshot::Receiver<Result<T, ChangeError>>,
    /// Kept for further queries.
    settled: Option<Result<T, ChangeError>>,
}

impl<T: Clone> Change<T> {
    pub(crate) fn new(id: ChildId) -> (Self, oneshot::Sender<Result<T, ChangeError>>) {
        let (sender, outcome) = oneshot::channel();
        (Self { id, outcome, settled: None }, sender)
    }

    /// The child that changes.
    pub fn id(&self) -> ChildId {
        self.id
    }

    /// Waits for its end, at most this long. May be called again.
    ///
    /// # Errors
    /// It is still in progress, or has failed.
    ///
    /// # Cancel safety
    /// The change continues, and can be queried again.
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

impl_debug!([T] Change<T>, |this| id: this.id);
