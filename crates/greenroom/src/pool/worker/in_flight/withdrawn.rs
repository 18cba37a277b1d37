//! Messages that should not be started (any more) when their turn has come.

use std::sync::atomic::Ordering;

use greenroom_queue::discard::{discard, panic_of};

use super::InFlight;
use crate::{Actor, CallError, pool::pool_payload::Key};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// True if the message in hand should still be started. Otherwise it is withdrawn. Always true
    /// in a pool without this check.
    pub(crate) fn still_starts(&mut self) -> bool {
        let message = self.delivery.message.as_ref().or(self.spare.as_ref());
        let still = message.is_none_or(|message| is_wanted(self, message));
        if !still {
            self.withdraw();
        }
        still
    }

    /// The message in hand is not started: that is its outcome.
    #[cold]
    pub(super) fn withdraw(&mut self) {
        // It says nothing about how long others take.
        (self.measures.measurement, self.worker.polls) = (None, None);
        self.delivery.open_port();
        self.worker.core.frame.telemetry.counters.withdrawn.fetch_add(1, Ordering::Relaxed);
        let (message, extra) = self.finish();
        if let Some(port) = extra.and_then(|extra| extra.port) {
            port.resolve(CallError::Withdrawn);
        }
        discard(message);
    }
}

/// True if the message in hand has failed and would not be started again. This is checked here so
/// that the message does not hold room until then. If user code panics, the message waits.
pub(super) fn is_unwanted<A: Actor, K: Key>(in_flight: &InFlight<A, K>) -> bool {
    if in_flight.worker.core.settings.functions.starts_if.is_none() {
        return false;
    }
    let message = in_flight.delivery.message.as_ref().or(in_flight.spare.as_ref());
    let Some(message) = message else { return false };
    let mut wanted = true;
    discard(panic_of(&mut || wanted = is_wanted(in_flight, message)));
    !wanted
}

/// Runs user code.
fn is_wanted<A: Actor, K: Key>(in_flight: &InFlight<A, K>, message: &A::Message) -> bool {
    in_flight.worker.core.settings.functions.starts_if.as_ref().is_none_or(|wanted| wanted(message))
}
