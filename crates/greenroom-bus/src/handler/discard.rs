//! `drop` in the configuration: the event is handled by forgetting it.

use greenroom_config::{Listing, options};

use crate::event::Event;

use super::{
    Attempt, Handler, HandlerFactory, HandlerKind, Handling, Makes, OpenHandler, Outputs, handler,
};

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> =
    handler::<DropOptions>("drop", "The event is acknowledged and goes nowhere.");

options! {
    /// Has no settings.
    pub struct DropOptions = "this handler" {}
}

impl HandlerKind for DropOptions {
    fn makes(&self) -> Makes {
        Makes::Nothing
    }

    fn open(&self) -> Result<OpenHandler, String> {
        Ok(OpenHandler::fixed(DiscardFactory))
    }
}

/// Builds [`Discard`] handlers; they have no state and no settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscardFactory;

/// Acknowledges each event and hands nothing on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Discard;

impl HandlerFactory for DiscardFactory {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Discard))
    }
}

impl Handler for Discard {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Done(Ok(Outputs::None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples;

    #[test]
    fn u03_drop_hands_nothing_on() {
        let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
        let mut handler = DiscardFactory.build(0).unwrap();
        assert!(matches!(handler.handle(&event, &attempt), Handling::Done(Ok(Outputs::None))));
    }
}
