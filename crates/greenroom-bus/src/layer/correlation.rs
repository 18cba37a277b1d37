//! Flows begin somewhere.

use tower::Layer;

use super::{Around, Request, Surrounded};
use crate::{
    event::{CORRELATION_ID, Event},
    handler::{HandlerResult, Outputs},
};

/// An event without a [correlation id](CORRELATION_ID) begins a flow: its own id becomes the
/// correlation id. The handler sees it, and all events that the handler produces or passes on carry
/// it too.
///
/// Without this layer the engine hands on the correlation id that an event has, and an
/// event without one stays so.
#[derive(Debug, Clone, Copy, Default)]
pub struct Correlation;

impl<S> Layer<S> for Correlation {
    type Service = Surrounded<Self, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Surrounded::new(*self, inner)
    }
}

impl Around for Correlation {
    /// The event, where its flow begins here.
    type Pass = Option<Event>;

    fn before(&self, request: &mut Request) -> Result<Self::Pass, HandlerResult> {
        if request.event.extension(CORRELATION_ID).is_some() {
            return Ok(None);
        }
        request.event = request.event.clone().correlated();
        Ok(Some(request.event.clone()))
    }

    fn after(pass: Self::Pass, result: &mut HandlerResult) {
        let (Some(event), Ok(outputs)) = (pass, result) else { return };
        *outputs = match std::mem::take(outputs) {
            Outputs::None => Outputs::None,
            Outputs::Same => Outputs::Events(vec![event]),
            Outputs::Events(made) => {
                Outputs::Events(made.into_iter().map(|made| made.caused_by(&event)).collect())
            }
        };
    }
}
