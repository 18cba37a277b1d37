//! `drop` in the configuration: the event is handled by forgetting it.

use crate::event::Event;

use super::{Attempt, Handler, HandlerFactory, Handling, Outputs};

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
