//! The values that callers and workers of a pool exchange past its queue.

use std::marker::PhantomData;

use greenroom_queue::handoff::{Exchange, HandoffSlot};

use crate::{
    ReplyPort,
    reply::{self, Reply},
};

/// The values that callers and workers of a pool exchange past its queue.
pub(crate) struct PoolExchange<M, R, E>(PhantomData<(M, R, E)>);

/// The meeting point of a worker and its callers.
pub(crate) type PoolHandoffSlot<M, R, E> = HandoffSlot<PoolExchange<M, R, E>>;

impl<M, R, E> Exchange for PoolExchange<M, R, E> {
    type Message = M;
    type Response = R;
    type Port = ReplyPort<R, E>;
    type Promise = Reply<R, E>;

    #[inline]
    fn open() -> (ReplyPort<R, E>, Reply<R, E>) {
        reply::channel()
    }

    #[inline]
    fn respond(port: ReplyPort<R, E>, response: R) -> Result<(), R> {
        port.reply(response)
    }
}
