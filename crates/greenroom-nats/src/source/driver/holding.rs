//! Holding messages back until older ones have come.

use std::time::Duration;

use greenroom_bus::source::Taken;
use tokio::time::{Instant, timeout};

use super::{
    super::hold::{ASK_EVERY, Holding, Missing},
    Driver, HoldingBack,
    in_vain::InVain,
    suspicion::Suspicion,
    unreadable::LOOK_FOR,
};
use crate::connection::because;

impl HoldingBack {
    /// These have not come in their time.
    pub(super) fn waits_in_vain(&mut self, missing: Missing, ack_wait: Duration) {
        self.in_vain = Some(InVain::new(missing, ack_wait, Instant::now()));
    }

    /// Whether something has not come in its time lately, and still has not.
    pub(super) fn is_in_vain(&self) -> bool {
        self.in_vain.is_some_and(|in_vain| in_vain.lasts(Instant::now()))
    }

    /// Holds back a message that was not open, or returns it if it can continue.
    pub(super) fn keep(&mut self, taken: Taken) -> Option<Taken> {
        let Some(hold) = &mut self.hold else {
            self.in_vain.iter_mut().for_each(|in_vain| in_vain.missing.comes(taken.position));
            return Some(taken);
        };
        hold.keep(taken);
        None
    }
}

impl Driver {
    /// While messages are held back, asks the server how many it waits for, and releases them when
    /// it is time.
    pub(super) async fn look_after_hold(&mut self) {
        let now = Instant::now();
        let Some(hold) = &mut self.holding.hold else { return };
        if self.bound.lost.is_some()
            || !self.connection.is_up()
            || !self.shared.is_leased(now)
            || self.shared.look(|s| s.is_paused)
        {
            // Nothing can come during that time.
            return hold.wait_on(self.input.ack_wait, now);
        }
        let is_due = now >= hold.until;
        if is_due || now >= hold.ask_at {
            self.ask_for_hold().await;
        }
        if is_due {
            // Messages that the server had sent before its answer are here by now.
            self.receive_ready();
        }
        let Some(hold) = &self.holding.hold else { return };
        let held = hold.len() as u64;
        self.shared.look(|state| state.stats.held_back = held);
        let missing = match hold.is_over(self.input.hold, Instant::now()) {
            Holding::Wait => return,
            Holding::Complete => {
                self.asking.suspicion = Suspicion::default();
                None
            }
            Holding::Enough(missing) => Some((missing, hold.missing)),
        };
        if let Some((missing, waits_for)) = missing {
            self.holding.waits_in_vain(waits_for, self.input.ack_wait);
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

    /// Begins another turn. Time in a turn that stood still does not count as waiting.
    pub(super) fn begin_turn(&mut self) {
        let now = Instant::now();
        if self.stood_still(now)
            && let Some(hold) = &mut self.holding.hold
        {
            hold.begin_anew(self.input.ack_wait, now);
        }
        self.holding.turned = now;
    }

    /// Whether this turn has taken far longer than it may: the process was frozen, or the server
    /// did not answer. Nothing was read during that time.
    pub(super) fn stood_still(&self, now: Instant) -> bool {
        now - self.holding.turned >= self.input.ack_wait / 4
    }

    /// Checks whether overdue messages are there by now, or acknowledged elsewhere.
    pub(super) async fn look_after_missed(&mut self) {
        if self.holding.hold.is_some() || !self.holding.is_in_vain() {
            return;
        }
        self.answer().await;
        // Messages in hand have to be reported as in progress during that time.
        let within = LOOK_FOR.min(self.input.ack_wait / 8);
        if let Ok(Ok(missing)) = timeout(within, self.ask_what_is_missing()).await {
            self.holding.in_vain.iter_mut().for_each(|in_vain| in_vain.missing = missing);
        }
    }

    async fn ask_for_hold(&mut self) {
        self.answer().await;
        let missing = self.ask_what_is_missing().await;
        let now = Instant::now();
        let Some(hold) = &mut self.holding.hold else { return };
        match missing {
            Ok(missing) => hold.asked(missing, now),
            Err(error) => {
                tracing::debug!(error, "the state of the consumer is not known yet");
                hold.ask_at = now + ASK_EVERY;
            }
        }
    }

    /// Once the server was told of all that is settled.
    async fn ask_what_is_missing(&mut self) -> Result<Missing, String> {
        if !self.barrier().await {
            return Err("no answer".to_owned());
        }
        let info = self.bound.consumer.get_info().await.map_err(|error| because(&error))?;
        let open = self.shared.look(|state| state.tracker.open()) as u64;
        let (waits_for, up_to) = (info.num_ack_pending as u64, info.delivered.stream_sequence);
        self.holding.floor = Some(info.ack_floor.stream_sequence);
        Ok(Missing::asked(waits_for, up_to, open))
    }
}
