//! The workers that have accepted a message.

use crate::{NotAccepted, SendError};

/// The workers that have accepted a broadcast message: at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "some workers may not have accepted the message"]
pub struct Sent(Vec<(usize, Result<(), NotAccepted>)>);

impl Sent {
    /// True if each live worker has accepted its copy.
    pub fn is_complete(&self) -> bool {
        self.refused().next().is_none()
    }

    /// Per worker, in the order of the slots.
    pub fn results(&self) -> &[(usize, Result<(), NotAccepted>)] {
        &self.0
    }

    /// The slots of the workers that have accepted it.
    pub fn accepted(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter(|(_, result)| result.is_ok()).map(|(slot, _)| *slot)
    }

    /// The slots of the workers that have not accepted it, and why.
    pub fn refused(&self) -> impl Iterator<Item = (usize, NotAccepted)> {
        self.0.iter().filter_map(|(slot, result)| Some((*slot, result.err()?)))
    }
}

/// No worker has accepted a broadcast message; this contains it.
#[derive(thiserror::Error)]
#[error("none of {} live workers accepted the message", refused.len())]
pub struct NoneAccepted<M> {
    message: Option<M>,
    refused: Vec<(usize, NotAccepted)>,
}

impl<M> NoneAccepted<M> {
    pub(super) fn no_workers(message: M) -> Self {
        Self { message: Some(message), refused: Vec::new() }
    }

    /// The message, unless every copy was dropped on arrival.
    pub fn into_message(self) -> Option<M> {
        self.message
    }

    /// Each live worker's slot and reason, in the order of the slots; empty if no worker is alive.
    pub fn refused(&self) -> &[(usize, NotAccepted)] {
        &self.refused
    }
}

impl_debug!([M] NoneAccepted<M>, |this| refused: this.refused);

/// Collects the results of the workers. A message that came back is kept until one was accepted.
pub(super) struct SentOutcomes<M> {
    results: Vec<(usize, Result<(), NotAccepted>)>,
    /// A copy that came back.
    back: Option<M>,
}

impl<M> SentOutcomes<M> {
    pub(super) fn new() -> Self {
        Self { results: Vec::new(), back: None }
    }

    pub(super) fn add(&mut self, slot: usize, result: Result<(), SendError<M>>) {
        let result = result.map_err(|error| {
            let why = error.without_message();
            self.back = error.into_message().or(self.back.take());
            why
        });
        self.results.push((slot, result));
    }

    /// # Errors
    /// A copy of the message, if no worker has accepted one.
    pub(super) fn sent(mut self) -> Result<Sent, NoneAccepted<M>> {
        self.results.sort_unstable_by_key(|(slot, _)| *slot);
        let sent = Sent(self.results);
        if sent.accepted().next().is_some() {
            return Ok(sent);
        }
        Err(NoneAccepted { message: self.back, refused: sent.refused().collect() })
    }
}
