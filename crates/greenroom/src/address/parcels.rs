//! What a sender makes of a message before it is queued, and hears if it is not.

use crate::{
    CallError, Class, NotAccepted, ReplyPort,
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

/// What the caller of a message hears of a pool that takes it not.
pub(crate) fn refusal_of<M, R, E, F>(
    payload: &Outgoing<M, R, E>,
    why: NotAccepted,
) -> CallError<F> {
    match payload.extra.as_ref().map(|extra| extra.waiter) {
        Some(Waiter::Chosen) => CallError::WouldDeadlock,
        _ => refusal(why),
    }
}

/// What a caller hears of a pool that takes no message.
pub(crate) fn refusal<E>(why: NotAccepted) -> CallError<E> {
    match why {
        NotAccepted::Full => CallError::Full,
        NotAccepted::Dropped => CallError::Dropped,
        NotAccepted::Refused => CallError::Refused,
        NotAccepted::NoWorkers => CallError::NoWorkers,
        NotAccepted::Stopped => CallError::Stopped,
        NotAccepted::KeyFull => CallError::KeyFull,
        NotAccepted::Parked => CallError::Parked,
        NotAccepted::KeyRequired => CallError::KeyRequired,
    }
}
