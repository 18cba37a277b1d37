//! Readiness in the sense of tower and futures: requested by polling, kept until it is used.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use greenroom_queue::lock::Mutex;

use crate::{
    NotAccepted,
    address::{Address, permit::Permit},
};

type PermitFuture<M, R, E> =
    Pin<Box<dyn Future<Output = Result<Permit<M, R, E>, NotAccepted>> + Send>>;

/// A permit that is requested by polling.
///
/// The mutex is never locked: it makes a future that only its owner polls shareable by reference,
/// which frameworks require of a service although they never use it.
pub(super) struct Readiness<M, R, E>(Mutex<State<M, R, E>>);

enum State<M, R, E> {
    /// Not polled since the last permit was used. Left by `poll`.
    Unasked,
    /// In line for room. Left when there is room, or when the pool has stopped.
    PermitFuture(PermitFuture<M, R, E>),
    /// Left by `take`.
    Held(Permit<M, R, E>),
}

impl<M, R, E> Readiness<M, R, E> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State::Unasked))
    }

    /// The permit, if one is held.
    pub(super) fn take(&mut self) -> Option<Permit<M, R, E>> {
        match std::mem::replace(self.0.get_mut(), State::Unasked) {
            State::Held(permit) => Some(permit),
            State::Unasked | State::PermitFuture(_) => None,
        }
    }
}

impl<M: 'static, R: 'static, E: 'static> Readiness<M, R, E> {
    /// Ready once a permit is held. Each wait for room is one place in line,
    /// however often it is polled.
    pub(super) fn poll(
        &mut self,
        address: &Address<M, R, E>,
        task: &mut Context<'_>,
    ) -> Poll<Result<(), NotAccepted>> {
        let state = self.0.get_mut();
        if let State::Unasked = state {
            *state = match address.try_reserve() {
                Ok(permit) => State::Held(permit),
                Err(NotAccepted::Full) => State::PermitFuture(Box::pin(address.reserve())),
                Err(closed) => return Poll::Ready(Err(closed)),
            };
        }
        if let State::PermitFuture(waiting) = state {
            let outcome = ready!(waiting.as_mut().poll(task));
            *state = State::Unasked;
            *state = State::Held(outcome?);
        }
        Poll::Ready(Ok(()))
    }
}
