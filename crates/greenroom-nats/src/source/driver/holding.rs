//! Holding messages back until older ones have come.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::hold::{ASK_EVERY, Holding},
    Driver, HoldingBack,
    suspicion::Suspicion,
};
use crate::connection::because;

impl HoldingBack {
    /// Something has not come in its time: for so long, nothing is waited for.
    pub(super) fn waits_in_vain(&mut self, ack_wait: Duration) {
        self.in_vain_until = Some(Instant::now() + 10 * ack_wait);
    }

    /// Whether something has not come in its time lately.
    pub(super) fn is_in_vain(&self) -> bool {
        self.in_vain_until.is_some_and(|until| Instant::now() < until)
    }
}

impl Driver {
    /// Asks the server what it waits for, while anything is held back, and ends that where it is
    /// time.
    pub(super) async fn look_after_hold(&mut self) {
        let now = Instant::now();
        let Some(hold) = &mut self.holding.hold else { return };
        if self.bound.lost.is_some()
            || !self.connection.is_up()
            || self.shared.look(|s| s.is_paused)
        {
            // Nothing can come meanwhile.
            return hold.wait_on(self.options.ack_wait, now);
        }
        if now >= hold.ask_at {
            self.ask_what_is_missing().await;
        }
        let Some(hold) = &self.holding.hold else { return };
        let held = hold.len() as u64;
        self.shared.look(|state| state.stats.held_back = held);
        let missing = match hold.is_over(self.options.hold_bytes, Instant::now()) {
            Holding::Wait => return,
            Holding::Complete => {
                self.asking.suspicion = Suspicion::default();
                None
            }
            Holding::Enough(missing) => Some(missing),
        };
        if let Some(missing) = missing {
            self.holding.waits_in_vain(self.options.ack_wait);
            tracing::warn!(
                consumer = self.bound.wanted.name,
                missing,
                held,
                "older messages were waited for in vain: what was held back goes on, and they may come out of order; is another process reading this consumer?"
            );
        }
        if let Some(hold) = self.holding.hold.take() {
            self.shared.look(|state| state.stats.held_back = 0);
            self.shared.give(hold.release());
        }
    }

    async fn ask_what_is_missing(&mut self) {
        self.answer().await;
        let info = match self.barrier().await {
            true => self.bound.consumer.get_info().await.map_err(|error| because(&error)),
            false => Err("no answer".to_owned()),
        };
        let open = self.shared.look(|state| state.tracker.open()) as u64;
        let now = Instant::now();
        let Some(hold) = &mut self.holding.hold else { return };
        match info {
            Ok(info) => {
                let (waits_for, up_to) =
                    (info.num_ack_pending as u64, info.delivered.stream_sequence);
                hold.asked(waits_for, up_to, open, now);
                self.holding.floor = Some(info.ack_floor.stream_sequence);
            }
            Err(error) => {
                tracing::debug!(error, "the state of the consumer is not known yet");
                hold.ask_at = now + ASK_EVERY;
            }
        }
    }
}
