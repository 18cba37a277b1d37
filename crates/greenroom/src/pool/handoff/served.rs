//! What a call comes to that is not queued.

use std::task::{Context, Poll};

use greenroom_queue::handoff::HandedOutcome;

use super::pool_exchange::PoolHandoffSlot;
use crate::{Actor, reply::Reply};

/// What a call that is not queued comes to.
pub(crate) enum Served<'a, M, R, E> {
    Reply(R),
    /// The handler has suspended, for example: it is to come.
    Later(Reply<R, E>),
    /// A worker has been woken for it: here the caller waits.
    Handed(HandoffWait<'a, M, R, E>),
}

/// [`Served`] by a pool.
pub(crate) type ServedBy<'a, A> =
    Served<'a, <A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

/// A caller that waits at a handoff slot, until it is dropped.
pub(crate) struct HandoffWait<'a, M, R, E>(pub(crate) &'a PoolHandoffSlot<M, R, E>);

impl<'a, M, R, E> HandoffWait<'a, M, R, E> {
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<HandedOutcome<R, Reply<R, E>>> {
        self.0.poll(cx)
    }

    /// It has been told.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl<M, R, E> Drop for HandoffWait<'_, M, R, E> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
