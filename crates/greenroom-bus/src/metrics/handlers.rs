//! The figures of handlers, by handler.

use super::{Families, Metric};
use crate::engine::Control;

const OF_HANDLER: &[&str] = &["handler"];

metrics! {
    ATTEMPTS: counter("greenroom_handler_attempts_total", &["handler", "success"]) =
        "Attempts that have ended, without those that were given back unstarted.";
    TIME: histogram("greenroom_handler_attempt_seconds", OF_HANDLER) =
        "How long attempts took; measured by sample.";
    CRASHES: counter("greenroom_handler_crashes_total", OF_HANDLER) =
        "Worker processes of the handler that died, or were killed for an invalid answer.";
    OUTAGE: gauge("greenroom_handler_outage_seconds", OF_HANDLER, Seconds) =
        "How long the handler has been in outage; 0 while it is not.";
    PAUSED: gauge("greenroom_handler_paused", OF_HANDLER) =
        "1 while the handler is paused by an operator, otherwise 0.";
}

/// Adds the figures of the handlers.
pub(super) fn add(families: &mut Families, control: &Control) {
    let attempts = control.handlers().into_iter().map(|handler| handler.attempts());
    for (handler, attempts) in control.handler_views().iter().zip(attempts) {
        let name = &[&*handler.name];
        families.add(&ATTEMPTS, &[&handler.name, "true"], attempts.succeeded);
        families.add(&ATTEMPTS, &[&handler.name, "false"], attempts.failed);
        families.add(&TIME, name, attempts.times());
        families.add(&CRASHES, name, handler.crashes);
        let outage = handler.outage.as_ref().map(|outage| outage.lasted).unwrap_or_default();
        families.add(&OUTAGE, name, outage);
        families.add(&PAUSED, name, handler.paused);
    }
}
