//! Results that arrive in any order, joined in one.

use std::time::Duration;

use super::{
    partial::{PartialPolicy, SplitJoinError},
    round::Round,
};
use crate::{CallError, Envelope, pool::Worker};

/// From the state so far, the part's index, and its result, to the next state.
pub(super) type Join<R, E, S> = dyn Fn(S, usize, Result<R, CallError<E>>) -> S + Send + Sync;

/// A part of a request: its index among all live workers, its worker, and the message.
pub(super) type Part<M, R, E> = (usize, Worker<M, R, E>, M);

/// Sends the parts, and joins their results in the order of the parts.
pub(super) async fn fold<M, R, E, S>(
    parts: Vec<Part<M, R, E>>,
    init: S,
    join: &Join<R, E, S>,
    policy: PartialPolicy,
    within: Option<Duration>,
) -> Result<S, SplitJoinError<E>>
where
    M: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    let indexes: Vec<usize> = parts.iter().map(|(index, ..)| *index).collect();
    let parts = parts.into_iter().map(|(_, member, message)| (member, message));
    let mut round = Round::new(parts, &Envelope::new(), within);
    // How many have been joined; the calls of the round are in the order of the parts.
    let (mut state, mut joined) = (init, 0);
    while let Some(call) = round.next().await {
        if policy == PartialPolicy::Error
            && let Some(error) = round.error(call)
        {
            return Err(SplitJoinError::PartFailed { slot: round.slot(call), error });
        }
        while let Some(result) = round.take(joined) {
            state = join(state, indexes[joined], result);
            joined += 1;
        }
    }
    if policy == PartialPolicy::Error && joined < indexes.len() {
        return Err(SplitJoinError::TimedOut { unanswered: round.unanswered(joined) });
    }
    for (call, &index) in indexes.iter().enumerate().skip(joined) {
        let result = round.take(call).unwrap_or(Err(CallError::TimedOut));
        state = join(state, index, result);
    }
    Ok(state)
}
