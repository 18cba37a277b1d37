//! From when on a message is in hand.

use std::sync::atomic::Ordering;

use greenroom_queue::{handoff::Caller, lock::user_code_follows, stamp::Stamp};

use super::{InFlight, Polls, Taken};
use crate::{
    Actor, Class, DeadLetterReason,
    delivery::{Extra, Marks},
    pool::{
        pool_payload::Key,
        stats::{Measurement, counters::count},
    },
};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// Takes the message that a caller has handed this worker. False if there is none to handle:
    /// something else comes first, and then the message is queued.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_handed(&mut self) -> bool {
        let is_over = self.worker.core.frame.lifecycle.ended.load(Ordering::Acquire);
        if self.is_interrupted() || is_over {
            self.worker.core.take_back_handed(self.worker.slot);
            return false;
        }
        let (core, worker) = (&self.worker.core, self.worker.slot);
        let handoff_slot =
            self.delivery.handoff_slot.get_or_insert_with(|| core.handoff_slot(worker).clone());
        let (message, stamp) = (&mut self.delivery.message, &mut self.delivery.stamp);
        match handoff_slot.take_handed(message, stamp) {
            None => return false,
            Some(Caller::Waits) => self.delivery.marks.add(Marks::BY_HANDOFF),
            Some(Caller::Gone(port)) => self.delivery.extra = Some(Extra::new(Some(port))),
        }
        self.delivery.class = Class::Normal;
        self.start_handoff() == Taken::InHand
    }

    /// As `start`, if the clock may stand.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn start_handoff(&mut self) -> Taken {
        match self.delivery.stamp {
            Stamp::UNDATED => self.slot_state.set_busy_since_now(),
            _ => self.slot_state.set_busy_since(self.worker.core.frame.telemetry.coarse.shown()),
        }
        self.start_next()
    }

    /// The message in the delivery is in hand from here on, unless its caller has gone.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start(&mut self) -> Taken {
        self.slot_state.set_busy_since(self.worker.core.frame.telemetry.coarse.shown());
        self.start_next()
    }

    /// As `start`, if the slot may be busy already: the messages of a run follow each other faster
    /// than the clock advances.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_next(&mut self) -> Taken {
        count(&self.slot_state.counters.started);
        self.in_hand = true;
        if let Some(extra) = &self.delivery.extra
            && extra.wants_a_look()
            && self.is_settled_already()
        {
            return Taken::Skipped;
        }
        if self.delivery.stamp.is_sampled() {
            self.measure();
        }
        match self.worker.core.settings.derived.looks_at_start {
            true => self.look_at_start(),
            false => Taken::InHand,
        }
    }

    #[inline]
    fn look_at_start(&mut self) -> Taken {
        if self.worker.core.settings.functions.starts_if.is_some() && !self.still_starts() {
            return Taken::Skipped;
        }
        if let Some(copy) = self.worker.core.settings.functions.copy {
            user_code_follows();
            self.spare = self.delivery.message.as_ref().map(copy);
        }
        Taken::InHand
    }

    #[cold]
    fn measure(&mut self) {
        let now = self.worker.core.frame.telemetry.coarse.real();
        self.measures.measurement = Some(Measurement::begin(self.delivery.stamp, now));
        self.worker.polls = Some(Polls::begin(now));
    }

    /// Counts a retry as no longer waiting, and settles a call whose caller has gone.
    #[cold]
    fn is_settled_already(&mut self) -> bool {
        let Some(extra) = &mut self.delivery.extra else { return false };
        // Wakes a sender that waits for these bytes.
        extra.claim = None;
        if std::mem::take(&mut extra.next.parked) {
            self.worker.core.frame.telemetry.counters.waiting.fetch_sub(1, Ordering::Relaxed);
            self.slot_state.note_attempt(extra.attempts + 1);
        }
        let abandoned = extra.port.as_ref().is_some_and(|port| port.is_abandoned());
        if abandoned {
            self.dead_letter(DeadLetterReason::Abandoned, None, None);
        } else if extra.has_expired() {
            self.dead_letter(DeadLetterReason::Expired, None, None);
        } else {
            return false;
        }
        true
    }
}
