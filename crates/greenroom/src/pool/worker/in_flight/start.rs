//! The moment from which a message is in hand.

use std::sync::atomic::Ordering;

use greenroom_queue::{handoff::Caller, lock::user_code_follows, stamp::Stamp};

use super::{InFlight, Polls, Taken};
use crate::{
    Actor, Class, DeadLetterReason,
    delivery::{Extra, Marks},
    pool::{
        core::serve::{handoff_slot, take_back_handed},
        pool_payload::Key,
        stats::{Measurement, counters::count},
    },
};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// Takes the message that a caller has handed to this worker. Returns false if there is none to
    /// handle: something else may come first, and then the message is queued.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_handed(&mut self) -> bool {
        let is_over = self.worker.core.frame.lifecycle.ended.load(Ordering::Acquire);
        if self.is_interrupted() || is_over {
            take_back_handed(&self.worker.core, self.worker.slot);
            return false;
        }
        let (core, worker) = (&self.worker.core, self.worker.slot);
        let handoff_slot =
            self.delivery.handoff_slot.get_or_insert_with(|| handoff_slot(core, worker).clone());
        let (message, stamp) = (&mut self.delivery.message, &mut self.delivery.stamp);
        match handoff_slot.take_handed(message, stamp) {
            None => return false,
            Some(Caller::Waits) => self.delivery.marks.add(Marks::BY_HANDOFF),
            Some(Caller::Gone(port)) => self.delivery.extra = Some(Extra::new(Some(port))),
        }
        self.delivery.class = Class::Normal;
        match self.delivery.stamp {
            // The clock may be stopped.
            Stamp::UNDATED => self.slot_state.set_busy_since_now(),
            _ => self.slot_state.set_busy_since(self.worker.core.frame.telemetry.coarse.shown()),
        }
        self.start_next() == Taken::InHand
    }

    /// The message in the delivery is in hand from now on, unless its caller has gone.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start(&mut self) -> Taken {
        self.slot_state.set_busy_since(self.worker.core.frame.telemetry.coarse.shown());
        self.start_next()
    }

    /// Like `start`, if the slot may be busy already: the messages of a run follow each other
    /// faster than the clock advances.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_next(&mut self) -> Taken {
        // This frees its permit: senders add up what was started.
        count(&self.slot_state.counters.started);
        self.in_hand = true;
        if let Some(extra) = &self.delivery.extra
            && extra.wants_a_look()
            && is_settled_already(self)
        {
            return Taken::Skipped;
        }
        if self.delivery.stamp.is_sampled() {
            measure(self);
        }
        match self.worker.core.settings.derived.looks_at_start {
            true => look_at_start(self),
            false => Taken::InHand,
        }
    }
}

#[inline]
fn look_at_start<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> Taken {
    let functions = &in_flight.worker.core.settings.functions;
    let copy = functions.copy;
    if functions.starts_if.is_some() && !in_flight.still_starts() {
        return Taken::Skipped;
    }
    if let Some(copy) = copy {
        user_code_follows();
        in_flight.spare = in_flight.delivery.message.as_ref().map(copy);
    }
    Taken::InHand
}

#[cold]
fn measure<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) {
    let now = in_flight.worker.core.frame.telemetry.coarse.real();
    in_flight.measures.measurement = Some(Measurement::begin(in_flight.delivery.stamp, now));
    in_flight.worker.polls = Some(Polls::begin(now));
}

/// Counts a retry as no longer waiting, and settles a call whose caller has gone.
#[cold]
fn is_settled_already<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>) -> bool {
    let Some(extra) = &mut in_flight.delivery.extra else { return false };
    // Wakes a sender that waits for these bytes.
    extra.claim = None;
    if std::mem::take(&mut extra.next.parked) {
        in_flight.worker.core.frame.telemetry.counters.waiting.fetch_sub(1, Ordering::Relaxed);
        in_flight.slot_state.note_attempt(extra.attempts + 1);
    }
    let abandoned = extra.port.as_ref().is_some_and(|port| port.is_abandoned());
    if abandoned {
        in_flight.dead_letter(DeadLetterReason::Abandoned, None, None);
    } else if extra.has_expired() {
        in_flight.dead_letter(DeadLetterReason::Expired, None, None);
    } else {
        return false;
    }
    true
}
