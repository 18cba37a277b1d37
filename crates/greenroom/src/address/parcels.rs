//! What a sender makes of a message before it is queued, and hears if it is not.

use crate::{
    CallError, Class, NotAccepted, ReplyPort, SendError,
    delivery::{Extra, SenderInfo, Waiter},
    pool::outgoing::Outgoing,
};

/// A message with what its sender says of it.
pub(crate) fn enveloped<M, R, E>(
    message: M,
    class: Class,
    about: SenderInfo,
    port: Option<ReplyPort<R, E>>,
) -> Outgoing<M, R, E> {
    let extra = (port.is_some() || !about.is_empty()).then(|| Extra::with(port, about));
    Outgoing { message: Some(message), extra, class }
}

/// A worker of the pool waits for it.
pub(crate) fn mark_own_call<M, R, E>(payload: &mut Outgoing<M, R, E>) {
    let extra = payload.extra.get_or_insert_with(|| Extra::new(None));
    extra.waiter = Waiter::Worker;
}

/// What the caller of a message hears of a pool that takes it not. The message is taken out.
pub(crate) fn refusal_of<M, R, E, F>(
    payload: &mut Outgoing<M, R, E>,
    why: NotAccepted,
) -> CallError<F, M> {
    let message = payload.message.take();
    match payload.extra.as_ref().map(|extra| extra.waiter) {
        Some(Waiter::Chosen) => CallError::WouldDeadlock(message),
        _ => CallError::NotAccepted(refused(message, why)),
    }
}

/// The message, with the reason; gone with it if the pool has dropped it.
pub(crate) fn refused<M>(message: Option<M>, why: NotAccepted) -> SendError<M> {
    match message {
        Some(message) => SendError::new(message, why),
        None => SendError::Dropped,
    }
}
