//! Several messages in hand at once, in pools of batches (K12): how they are collected, and that
//! each is settled by itself.
//!
//! The first message of a batch lies in the usual place of the message in hand, and the others
//! beside it; each is put into that place in its turn to be settled. Messages to retry are kept
//! until all are settled, and then return to the front of their lane as a group: one by one, each
//! would stand before the one that came before it.

use std::{
    hash::Hash,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use greenroom_queue::discard::discard;
use tokio::time::Instant;

use super::{
    InFlight, RunState, Source, Taken,
    fate::{BatchEnd, Deferred, Fate},
};
use crate::{
    Actor, Answer, DeadLetterReason,
    delivery::{BatchItem, Delivery},
    pool::{core::batch::NextOfBatch, panic_message::panic_message, pool_payload::Queued},
};

/// How often a worker that waits for more looks into the queue: other workers may be too busy to
/// bring it its messages.
const LOOKS: u32 = 4;

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> InFlight<A, K> {
    /// Takes messages that wait behind the message in hand and may be handled with it, and waits
    /// for more if that was asked for.
    pub(crate) async fn collect(&mut self) {
        let Some(batches) = self.worker.core.settings.config.handling.batches else { return };
        if batches.most == 1 || self.is_alone() {
            return;
        }
        if self.take_more(batches.most) || batches.within.is_zero() || !self.has_key() {
            return;
        }
        let begun = Instant::now();
        let core = self.worker.core.clone();
        self.worker.source = core.suspend(self.worker.slot, self.worker.source);
        self.rest();
        for look in 1..=LOOKS {
            let until = begun + batches.within * look / LOOKS;
            let full = core.expect_more(self.worker.source, batches.most - self.count());
            let full = full.unwrap_or_default();
            let _ = tokio::time::timeout_at(until, full.notified()).await;
            if self.worker.run_state == RunState::Suspended {
                self.wake_up();
            }
            core.fetch_into_lane(self.worker.slot, self.worker.source);
            if self.take_more(batches.most) || !self.batch_still_starts() {
                return;
            }
            if look < LOOKS {
                self.rest();
            }
        }
    }

    fn has_key(&self) -> bool {
        matches!(self.worker.source, Source::Head { hash: Some(_), .. } | Source::Lane { .. })
    }

    fn is_alone(&self) -> bool {
        self.delivery.extra.as_ref().is_some_and(|extra| extra.next.alone)
    }

    /// Messages in hand.
    fn count(&self) -> usize {
        1 + self.delivery.more.len()
    }

    /// Takes messages up to `most`, with the first, or until the batch has its size in
    /// bytes. True if it is full.
    fn take_more(&mut self, most: usize) -> bool {
        let core = self.worker.core.clone();
        let bound = core.settings.derived.batch_bytes.as_ref();
        let mut bytes = self.bytes();
        while self.count() < most && !bound.is_some_and(|bound| bound.is_full(bytes)) {
            if self.is_over() {
                return true;
            }
            let before = self.count();
            match self.worker.core.next_of_batch(self.worker.source) {
                NextOfBatch::Message(entry) => self.add(entry),
                NextOfBatch::None => return false,
            }
            if let (Some(bound), true) = (bound, self.count() > before) {
                let last = self.delivery.more.last();
                let size = bound.of(last.and_then(|held| held.delivery.message.as_ref()));
                bytes = bytes.saturating_add(size);
            }
        }
        true
    }

    /// Bytes in hand, if they count.
    fn bytes(&self) -> usize {
        let Some(bound) = &self.worker.core.settings.derived.batch_bytes else { return 0 };
        let more = self.delivery.more.iter().map(|held| &held.delivery);
        let all = std::iter::once(&self.delivery).chain(more);
        all.fold(0, |sum: usize, held| sum.saturating_add(bound.of(held.message.as_ref())))
    }

    /// Puts another message in hand, unless its caller has gone.
    fn add(&mut self, entry: Queued<A, K>) {
        let more = mem::take(&mut self.delivery.more);
        let mut first = self.empty_delivery();
        mem::swap(&mut first, &mut self.delivery);
        let (spare, since) = (
            self.spare.take(),
            self.slot_state.busy_since(|| self.worker.core.telemetry.coarse.shown()),
        );
        let measurement = self.measures.measurement.take();
        // It may be copied, which is user code; messages collected before are whole
        // whatever happens there.
        let begun = catch_unwind(AssertUnwindSafe(|| self.begin(self.worker.source, entry)));
        let taken = begun.unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            discard(panic);
            // The key is still that of the others.
            self.measures.measurement = None;
            self.dead_letter(DeadLetterReason::Panicked, None, Some(message));
            Taken::Skipped
        });
        self.measures.measurement = measurement;
        let second = mem::replace(&mut self.delivery, first);
        let second_spare = mem::replace(&mut self.spare, spare);
        self.in_hand = true;
        self.slot_state.set_busy_since(since.map_or(0, |since| since.nanos()));
        self.delivery.more = more;
        if taken == Taken::InHand {
            self.slot_state.add_messages(1);
            let held = BatchItem { delivery: second, spare: second_spare, result: None };
            self.delivery.more.push(held);
        }
    }

    fn empty_delivery(&self) -> super::DeliveryOf<A> {
        Delivery::empty(self.worker.core.telemetry.coarse.start())
    }

    /// Settles every message of a batch whose handler has returned.
    pub(crate) fn settle_batch(&mut self, result: Result<Answer<A::Reply>, A::Error>) {
        let more = mem::take(&mut self.delivery.more);
        if more.is_empty() {
            return self.settle(result);
        }
        let size = 1 + more.len() as u64;
        self.deferred = Some(Vec::new());
        self.guarded(|in_flight| in_flight.settle(result));
        for held in more {
            let result = self.put_in_hand(held);
            self.guarded(|in_flight| match result {
                Some(result) => in_flight.settle(result.map(Answer::Reply)),
                None if in_flight.delivery.message.is_some() => {
                    in_flight.attempt_alone(DeadLetterReason::Failed, None);
                }
                None => in_flight.dead_letter(DeadLetterReason::Failed, None, None),
            });
        }
        let all_done = self.deferred.as_ref().is_some_and(Vec::is_empty);
        self.go_on_with_deferred();
        if let Some((stands_for, took)) = self.measures.sample.take().filter(|_| all_done) {
            self.feed_sketch(u64::from(stands_for), size, took);
        }
    }

    /// Settles one message. If the policy panics, the message is a dead letter, and the
    /// others are still settled.
    fn guarded(&mut self, settle: impl FnOnce(&mut Self)) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| settle(self))) else { return };
        let message = panic_message(&*panic);
        discard(panic);
        tracing::error!(panic = message, "what settles a message of a batch panicked");
        if self.in_hand {
            self.dead_letter(DeadLetterReason::Panicked, None, Some(message));
        }
    }

    /// Settles every message of a batch that ended otherwise. It is unknown which message is at
    /// fault: if there are several, each is attempted again, alone. False if there is no batch.
    pub(crate) fn end_batch(&mut self, end: &BatchEnd) -> bool {
        let more = mem::take(&mut self.delivery.more);
        if more.is_empty() {
            return false;
        }
        self.deferred = Some(Vec::new());
        self.guarded(|in_flight| in_flight.end_one(end));
        for held in more {
            self.put_in_hand(held);
            self.guarded(|in_flight| in_flight.end_one(end));
        }
        self.measures.sample = None;
        self.go_on_with_deferred();
        true
    }

    fn end_one(&mut self, end: &BatchEnd) {
        match end {
            BatchEnd::Panicked(panic) => {
                self.attempt_alone(DeadLetterReason::Panicked, Some(panic.clone()));
            }
            BatchEnd::TimedOut => self.attempt_alone(DeadLetterReason::TimedOut, None),
            BatchEnd::Killed if self.begins_later => self.begin_later(),
            BatchEnd::Killed => self.attempt_alone(DeadLetterReason::Killed, None),
            BatchEnd::Stopped => self.return_message(),
        }
    }

    pub(super) fn put_in_hand(
        &mut self,
        held: BatchItem<A::Message, A::Reply, A::Error>,
    ) -> Option<Result<A::Reply, A::Error>> {
        self.delivery = held.delivery;
        self.spare = held.spare;
        self.in_hand = true;
        self.slot_state.remove_message();
        self.slot_state.set_busy_since(self.worker.core.telemetry.coarse.shown());
        held.result
    }

    /// Messages to retry return to the front of their lane, in order.
    fn go_on_with_deferred(&mut self) {
        let deferred = self.deferred.take().unwrap_or_default();
        if deferred.is_empty() {
            return;
        }
        let source = mem::replace(&mut self.worker.source, Source::None);
        let mut after = Duration::ZERO;
        let mut parked = None;
        let mut entries = Vec::new();
        for Deferred { entry, fate } in deferred {
            match fate {
                Fate::Retry(wait) => after = after.max(wait),
                Fate::Park(failed) => parked = parked.or(Some(failed)),
            }
            entries.extend(entry);
        }
        self.worker.source = match parked {
            Some(failed) => self.worker.core.park_key(self.worker.slot, source, entries, failed),
            None => self.worker.core.park_line(self.worker.slot, source, entries, after),
        };
    }
}
