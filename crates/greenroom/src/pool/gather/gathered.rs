//! The answers of several workers.

use crate::CallError;

/// The answer of the worker in this slot.
pub type SlotResult<R, E> = (usize, Result<R, CallError<E>>);

/// The answers of several workers to one message, in the order of their slots, and the workers
/// that have not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered<R, E> {
    /// In the order of the slots.
    results: Vec<SlotResult<R, E>>,
    /// In the order of the slots.
    unanswered: Vec<usize>,
}

impl<R, E> Gathered<R, E> {
    /// Separates the workers that have answered from the others.
    pub(super) fn new(
        answers: impl Iterator<Item = (usize, Option<Result<R, CallError<E>>>)>,
    ) -> Self {
        let mut gathered = Self { results: Vec::new(), unanswered: Vec::new() };
        for (slot, answer) in answers {
            match answer {
                Some(result) => gathered.results.push((slot, result)),
                None => gathered.unanswered.push(slot),
            }
        }
        gathered
    }

    /// True if each worker has answered, with a reply or with an error.
    pub fn is_complete(&self) -> bool {
        self.unanswered.is_empty()
    }

    /// The answers.
    pub fn results(&self) -> &[SlotResult<R, E>] {
        &self.results
    }

    /// The slots of the workers that had not answered when the gathering ended. Their calls
    /// were abandoned then.
    pub fn unanswered(&self) -> &[usize] {
        &self.unanswered
    }

    /// The replies.
    pub fn successes(&self) -> impl Iterator<Item = (usize, &R)> {
        self.results.iter().filter_map(|(slot, result)| Some((*slot, result.as_ref().ok()?)))
    }

    /// The replies, by value.
    pub fn into_successes(self) -> impl Iterator<Item = (usize, R)> {
        self.results.into_iter().filter_map(|(slot, result)| Some((slot, result.ok()?)))
    }

    /// The errors.
    pub fn errors(&self) -> impl Iterator<Item = (usize, &CallError<E>)> {
        self.results.iter().filter_map(|(slot, result)| Some((*slot, result.as_ref().err()?)))
    }

    /// The reply, if one ended the wait.
    pub(super) fn into_first(self) -> Result<FirstReply<R>, GatherError<R, E>> {
        let mut errors = Vec::new();
        for (slot, result) in self.results {
            match result {
                Ok(reply) => return Ok(FirstReply { slot, reply }),
                Err(error) => errors.push((slot, error)),
            }
        }
        if self.unanswered.is_empty() {
            return Err(GatherError::AllFailed(errors));
        }
        let results = errors.into_iter().map(|(slot, error)| (slot, Err(error))).collect();
        Err(GatherError::TimedOut(Self { results, unanswered: self.unanswered }))
    }
}

/// The first reply, and its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstReply<R> {
    /// The slot of the worker that replied.
    pub slot: usize,
    /// Its reply.
    pub reply: R,
}

/// Why a gathering did not get enough answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError<R, E> {
    /// No worker is alive. Nothing was sent.
    #[error("no worker is alive")]
    NoWorkers,
    /// The quorum is larger than the number of live workers. Nothing was sent.
    #[error("a quorum of {wanted} cannot be reached with {live} live workers")]
    TooFewWorkers {
        /// The number of replies requested.
        wanted: usize,
        /// The number of live workers.
        live: usize,
    },
    /// Each worker answered with an error; these are all of them, in the order of their slots.
    #[error("all {} workers failed", .0.len())]
    AllFailed(Vec<(usize, CallError<E>)>),
    /// The deadline passed before the first reply. Errors that arrived by then are included.
    #[error("no worker replied in time")]
    TimedOut(Gathered<R, E>),
    /// Too many workers failed to reach the quorum any more, or the deadline passed.
    #[error("{got} workers replied, but {wanted} were needed")]
    QuorumMissed {
        /// The number of replies requested.
        wanted: usize,
        /// The number of replies.
        got: usize,
        /// The answers that arrived by then.
        results: Gathered<R, E>,
    },
}
