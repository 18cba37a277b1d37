//! Cleaning up after an actor that panicked at its work.

use std::any::Any;

use greenroom_queue::discard::discard;

use super::in_flight::InFlight;
use crate::{
    Actor, ExitReason,
    panic_location::{self, PanicLocation},
    pool::panic_message::panic_message,
    pool::pool_payload::Key,
};

/// Settles the messages of a worker that panicked, and lets others continue with the rest.
pub(super) fn settle_panicked<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    worker: &str,
    panic: Box<dyn Any + Send>,
) -> ExitReason {
    let (message, location) = heard_of(worker, panic);
    in_flight.panicked(message.clone());
    in_flight.worker.rest();
    ExitReason::Panicked { message, location }
}

/// The message and the location of a panic.
fn heard_of(worker: &str, panic: Box<dyn Any + Send>) -> (String, Option<PanicLocation>) {
    let message = panic_message(&*panic);
    let location = panic_location::of(&*panic);
    discard(panic);
    tracing::error!(worker, panic = message, "a handler panicked");
    (message, location)
}
