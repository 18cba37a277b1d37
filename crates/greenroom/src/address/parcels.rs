//! Prepares a message before it is queued, and turns a refusal into an error.

use crate::{
    CallError, Class, NotAccepted, ReplyPort, SendError,
    delivery::{Extra, SenderInfo, Waiter},
    pool::outgoing::Outgoing,
};

/// A message with its sender's metadata.
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
    let extra = payload.extra.get_or_insert_with(Extra::without_port);
    extra.waiter = Waiter::Worker;
}

/// The error for the caller of a message that a pool does not accept. Takes the message out.
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

/// The message, with the reason; without the message if the pool has dropped it.
pub(crate) fn refused<M>(message: Option<M>, why: NotAccepted) -> SendError<M> {
    match message {
        Some(message) => SendError::new(message, why),
        None => SendError::Dropped,
    }
}
