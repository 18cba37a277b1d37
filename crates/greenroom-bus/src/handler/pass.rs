//! `pass`: the event goes on to the outputs as it is.

use greenroom_config::{Listing, options};

use crate::event::Event;

use super::{
    Attempt, Handler, HandlerFactory, HandlerKind, Handling, Makes, OpenHandler, Outputs, handler,
};

/// Its line in the registry.
pub const HANDLER: Listing<dyn HandlerKind> =
    handler::<PassOptions>("pass", "The event goes to the outputs as it is.");

options! {
    /// Has no settings.
    pub struct PassOptions = "this handler" {}
}

impl HandlerKind for PassOptions {
    fn makes(&self) -> Makes {
        Makes::Same
    }

    fn open(&self) -> Result<OpenHandler, String> {
        Ok(OpenHandler::fixed(PassFactory))
    }
}

/// Builds [`Pass`] handlers; they have no state and no settings.
#[derive(Debug, Clone, Copy, Default)]
pub struct PassFactory;

/// Hands each event on, unchanged and uncopied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pass;

impl HandlerFactory for PassFactory {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Pass))
    }
}

impl Handler for Pass {
    fn handle<'a>(&'a mut self, _event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Done(Ok(Outputs::Same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::samples;

    #[test]
    fn u03_pass_hands_the_event_on_without_an_await() {
        let (event, attempt) = (samples::event("a", "{}"), samples::attempt());
        let mut handler = PassFactory.build(0).unwrap();
        assert!(matches!(handler.handle(&event, &attempt), Handling::Done(Ok(Outputs::Same))));
    }
}
