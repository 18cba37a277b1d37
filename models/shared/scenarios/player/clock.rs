//! What passes with time: the ticks of the watchdog, and what is attempted again.

use super::{
    PoolOf,
    message::{Keyed, Numbers},
};
use crate::checker::yield_now;
use crate::pool::core::park::{wake_lane, wake_mail, wake_message};

impl<K: Keyed> PoolOf<K> {
    /// The product's `Watched::tick`, without the pace of handlers.
    pub(crate) fn tick(&self) {
        self.core.queue.wake.end_visits();
        let (revoked, _) = self.core.queue.revoke_stuck_tokens();
        if revoked || self.core.queue.wake.any_ready() {
            self.core.queue.wake.one_more(&self.core.frame.clock.watchdog);
        }
        self.core.serve_waiters();
    }

    /// What is parked comes due, where something is.
    pub(crate) fn come_due(&self) {
        let lane = self.core.frame.clock.lanes.lock().pop();
        if let Some((index, id)) = lane {
            wake_lane(&self.core, index, id);
        }
        let message = self.core.frame.clock.messages.lock().pop();
        if let Some((index, parked)) = message
            && let Some(entry) = parked.own::<Numbers, K>()
        {
            wake_message(&self.core, index, entry);
        }
        let mail = self.core.frame.clock.mail.lock().pop();
        if let Some((slot, parked)) = mail
            && let Some(entry) = parked.own::<Numbers, K>()
        {
            wake_mail(&self.core, slot, entry);
        }
    }

    /// Waits until something is parked, and lets it come due.
    pub(crate) fn wait_and_come_due(&self) {
        while self.core.frame.clock.is_empty() {
            yield_now();
        }
        self.come_due();
    }
}
