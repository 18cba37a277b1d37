//! The fate of messages of a batch that were not simply handled.

use std::{sync::Arc, time::Duration};

use crate::{
    Actor,
    pool::{failed::Failed, pool_payload::Queued},
};

/// The fate of a failed message of a batch, once all others are settled.
pub(super) struct Deferred<A: Actor, K> {
    /// `None` if the message is gone.
    pub(super) entry: Option<Queued<A, K>>,
    pub(super) fate: Fate<A::Error>,
}

/// The event that it waits for.
pub(super) enum Fate<E> {
    /// Its next attempt.
    Retry(Duration),
    /// An operator.
    Park(Arc<Failed<E>>),
}
