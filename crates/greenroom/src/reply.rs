//! The return path of a call.

use std::convert::Infallible;

use greenroom_queue::discard::wake_tasks;
use tokio::sync::oneshot;

use crate::CallError;

/// The reply channel of one call. Dropping it resolves the caller with [`CallError::Dropped`].
#[derive(Debug)]
pub struct ReplyPort<R, E = Infallible>(oneshot::Sender<Result<R, CallError<E>>>);

pub(crate) type Reply<R, E> = oneshot::Receiver<Result<R, CallError<E>>>;

pub(crate) fn channel<R, E>() -> (ReplyPort<R, E>, Reply<R, E>) {
    let (sender, receiver) = oneshot::channel();
    (ReplyPort(sender), receiver)
}

impl<R, E> ReplyPort<R, E> {
    /// Answers the call. Returns the reply if the caller no longer waits for it.
    ///
    /// # Errors
    /// The reply, if the caller has gone.
    pub fn reply(self, reply: R) -> Result<(), R> {
        let mut unsent = Ok(());
        wake_tasks(|| unsent = self.0.send(Ok(reply)));
        unsent.map_err(|unsent| match unsent {
            Ok(reply) => reply,
            Err(_) => unreachable!("what was sent is a reply"),
        })
    }

    /// Answers the call with the handler's error. A caller that has gone does not get it.
    pub fn fail(self, error: E) {
        self.resolve(CallError::Failed(error));
    }

    /// True if the caller no longer waits for the reply.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }

    pub(crate) fn resolve(self, error: CallError<E>) {
        wake_tasks(|| drop(self.0.send(Err(error))));
    }
}
