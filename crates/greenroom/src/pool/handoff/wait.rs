//! How a caller waits for a message that it has handed over.

use std::task::{Context, Poll};

use greenroom_queue::handoff::HandedOutcome;

use super::pool_exchange::PoolHandoffSlot;
use crate::{Actor, reply::Reply};

/// A caller that waits at a handoff slot, until it is dropped.
pub(crate) struct HandoffWait<'a, M, R, E>(pub(crate) &'a PoolHandoffSlot<M, R, E>);

/// The wait of a caller, in a pool with these actors.
pub(crate) type HandoffWaitOf<'a, A> =
    HandoffWait<'a, <A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

impl<'a, M, R, E> HandoffWait<'a, M, R, E> {
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<HandedOutcome<R, Reply<R, E>>> {
        self.0.poll(cx)
    }

    /// The caller has its result.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl<M, R, E> Drop for HandoffWait<'_, M, R, E> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
