//! Messages that are not to be started (any more) when their turn has come.

use std::sync::atomic::Ordering;

use greenroom_queue::discard::{discard, panic_of};

use super::InFlight;
use crate::{Actor, CallError, pool::pool_payload::Key};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// True if the message in hand is still to be started. Otherwise it is withdrawn. Always true
    /// in a pool that does not ask.
    pub(crate) fn still_starts(&mut self) -> bool {
        let message = self.delivery.message.as_ref().or(self.spare.as_ref());
        let still = message.is_none_or(|message| self.is_wanted(message));
        if !still {
            self.withdraw();
        }
        still
    }

    /// True if the message in hand has failed, and would not be started again. It is
    /// asked here so that the message does not hold room until then. After a panic of
    /// user code the message waits.
    pub(super) fn is_unwanted(&self) -> bool {
        if self.worker.core.settings.functions.starts_if.is_none() {
            return false;
        }
        let message = self.delivery.message.as_ref().or(self.spare.as_ref());
        let Some(message) = message else { return false };
        let mut is_wanted = true;
        discard(panic_of(&mut || is_wanted = self.is_wanted(message)));
        !is_wanted
    }

    /// Runs user code.
    fn is_wanted(&self, message: &A::Message) -> bool {
        self.worker.core.settings.functions.starts_if.as_ref().is_none_or(|wanted| wanted(message))
    }

    /// The message in hand is not started: that is its outcome.
    #[cold]
    pub(super) fn withdraw(&mut self) {
        // It tells nothing of how long others take.
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
