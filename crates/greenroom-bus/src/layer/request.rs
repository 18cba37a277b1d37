//! What goes through the layers.

use crate::{
    event::Event,
    handler::{Attempt, HandlerResult},
};

use super::way::{HandlerOfWorker, Own, Way};

/// One attempt at an event, on its way through the layers to the handler of
/// the worker that makes it.
///
/// A layer that does not pass it on answers in the handler's place. It cannot be cloned: an attempt
/// is made once.
#[derive(Debug)]
pub struct Request {
    /// The event. A layer may put another in its place; settlement, order and dead letters stay
    /// those of the one that was taken.
    pub event: Event,
    /// The attempt.
    pub attempt: Attempt,
    /// How it gets to its handler.
    pub(super) way: Way,
}

impl Request {
    pub(super) fn alone(
        event: Event,
        attempt: Attempt,
        handler: HandlerOfWorker,
        own: Option<Own>,
    ) -> Self {
        Self { event, attempt, way: Way::Alone(handler, own) }
    }
}

/// What an attempt ends in, from what a layer answers.
pub(super) fn result<E: Into<super::BoxError>>(
    answer: Result<crate::handler::Outputs, E>,
) -> HandlerResult {
    answer.map_err(|error| super::failures::failure(error.into()))
}
