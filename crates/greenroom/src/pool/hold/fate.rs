//! What becomes of messages of a batch that were not simply handled.

use std::{sync::Arc, time::Duration};

use crate::{
    Actor,
    pool::{entry::Queued, failed::Failed},
};

/// What becomes of a message of a batch that has failed, once all others are settled.
pub(super) struct Deferred<A: Actor, K> {
    /// Gone, where nobody has it any more.
    pub(super) entry: Option<Queued<A, K>>,
    pub(super) fate: Fate<A::Error>,
}

/// What it waits for.
pub(super) enum Fate<E> {
    /// Its next attempt.
    Retry(Duration),
    /// An operator.
    Park(Arc<Failed<E>>),
}

/// How a batch came to its end.
#[derive(Clone)]
pub(crate) enum BatchEnd {
    Panicked(String),
    TimedOut,
    /// Its worker was killed.
    Killed,
    /// Its pool has ended, or its runtime.
    Stopped,
}
