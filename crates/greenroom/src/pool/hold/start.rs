//! From when on a message is in hand.

use std::{hash::Hash, sync::atomic::Ordering};

use super::{Hold, Polls, Taken};
use crate::{
    Actor, Class, DeadLetterReason,
    delivery::{Extra, Marks},
    pool::{hatch::Caller, stamp::Stamp, stats::Measurement, tally::count},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Hold<A, K> {
    /// Takes the message of a caller that does this worker's work, unless something else comes
    /// first: then the message stays with the caller.
    pub(crate) fn take_at_hatch(&mut self) -> bool {
        let Some(hatch) = &self.delivery.hatch else { return false };
        if self.is_interrupted() || self.is_over() {
            return false;
        }
        if !hatch.take(&mut self.delivery.message, &mut self.delivery.stamp) {
            return false;
        }
        self.delivery.class = Class::Normal;
        self.delivery.marks.add(Marks::AT_HATCH);
        self.start_at_hatch();
        true
    }

    /// Takes the message that a caller has handed this worker. False if there is none to handle:
    /// something else comes first, and then the message is queued.
    #[inline(always)]
    pub(crate) fn take_handed(&mut self) -> bool {
        let is_over = self.post.core.lifecycle.ended.load(Ordering::Acquire);
        if self.is_interrupted() || is_over {
            self.post.core.take_back_handed(self.post.worker);
            return false;
        }
        let (core, worker) = (&self.post.core, self.post.worker);
        let hatch = self.delivery.hatch.get_or_insert_with(|| core.handoff.hatch(worker).clone());
        let (message, stamp) = (&mut self.delivery.message, &mut self.delivery.stamp);
        match hatch.take_handed(message, stamp) {
            None => return false,
            Some(Caller::Waits) => self.delivery.marks.add(Marks::AT_HATCH),
            Some(Caller::Gone(port)) => self.delivery.extra = Some(Extra::new(Some(port))),
        }
        self.delivery.class = Class::Normal;
        self.start_at_hatch() == Taken::InHand
    }

    /// As `start`, if the clock may stand.
    #[inline(always)]
    fn start_at_hatch(&mut self) -> Taken {
        match self.delivery.stamp {
            Stamp::UNDATED => self.seat.is_busy_since_now(),
            _ => self.seat.is_busy_since(self.post.core.telemetry.coarse.shown()),
        }
        self.start_next()
    }

    /// The message in the delivery is in hand from here on, unless its caller has gone.
    #[inline(always)]
    pub(super) fn start(&mut self) -> Taken {
        self.seat.is_busy_since(self.post.core.telemetry.coarse.shown());
        self.start_next()
    }

    /// As `start`, if the seat may be busy already: the messages of a run follow each other faster
    /// than the clock advances.
    #[inline(always)]
    pub(super) fn start_next(&mut self) -> Taken {
        count(&self.seat.tally.started);
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
        match self.post.core.settings.derived.looks_at_start {
            true => self.look_at_start(),
            false => Taken::InHand,
        }
    }

    #[inline]
    fn look_at_start(&mut self) -> Taken {
        if self.post.core.settings.functions.starts_if.is_some() && !self.still_starts() {
            return Taken::Skipped;
        }
        if let Some(copy) = self.post.core.settings.functions.copy {
            self.spare = self.delivery.message.as_ref().map(copy);
        }
        Taken::InHand
    }

    #[cold]
    fn measure(&mut self) {
        let now = self.post.core.telemetry.coarse.real();
        self.measures.measurement = Some(Measurement::begin(self.delivery.stamp, now));
        self.post.polls = Some(Polls::begin(now));
    }

    /// Counts a retry as no longer waiting, and settles a call whose caller has gone.
    #[cold]
    fn is_settled_already(&mut self) -> bool {
        let Some(extra) = &mut self.delivery.extra else { return false };
        // Wakes a sender that waits for these bytes.
        extra.admission.claim = None;
        if std::mem::take(&mut extra.parked) {
            self.post.core.telemetry.tally.waiting.fetch_sub(1, Ordering::Relaxed);
            self.seat.note_attempt(extra.attempts + 1);
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
