//! The request that goes through the layers.

use std::sync::Arc;

use crate::{
    event::Event,
    handler::{Attempt, HandlerResult},
};

use super::{passage::Passage, way::Way};

/// One attempt at an event, on its way through the layers to the handler of
/// the worker that makes it.
///
/// A layer that does not pass it on answers in the handler's place. It cannot be cloned: an attempt
/// is made once.
#[derive(Debug)]
pub struct Request {
    /// The event. A layer may replace it; settlement, order and dead letters remain those of the
    /// original event.
    pub event: Event,
    /// The attempt.
    pub attempt: Attempt,
    /// How it gets to its handler.
    pub(super) way: Way,
    /// How far it has come.
    pub(super) passage: Arc<Passage>,
}

/// The result of an attempt, from the answer of a layer.
pub(super) fn result<E: Into<super::BoxError>>(
    answer: Result<crate::handler::Outputs, E>,
) -> HandlerResult {
    answer.map_err(|error| super::failures::failure(error.into()))
}
