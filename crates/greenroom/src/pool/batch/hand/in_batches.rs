//! Several messages in hand at once (K12): collects them, and settles each by itself.
//!
//! The first message of a batch takes the usual place of the message in hand, with the others next
//! to it; each moves into that place in its turn to be settled. Messages to retry are kept until
//! all are settled, and then return to the front of their lane as a group: one by one, each would
//! come before its predecessor.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
};

use greenroom_queue::{discard::discard, lock::user_code_follows};
use tokio::time::Instant;

use super::{BatchEnd, Batching, Hand, HeldMessages};
use crate::{
    Answer, CallError, DeadLetterReason, Delivery,
    address::vtable::BoxFuture,
    delivery::BatchItem,
    pool::{batch::batches::Batches, panic_message::panic_message, worker::in_flight::Taken},
};

/// How often a worker that waits for more checks the queue: other workers may be too busy to move
/// messages to it.
const LOOKS: u32 = 4;

/// Handles messages in batches of this size.
pub(crate) struct InBatches(pub(crate) Batches);

impl<M, R, E> Batching<M, R, E> for InBatches
where
    M: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    fn collect<'a>(&'a self, hand: &'a mut dyn Hand<M, R, E>) -> BoxFuture<'a, bool> {
        Box::pin(hand.collect(self.0))
    }

    fn settle(&self, hand: &mut dyn Hand<M, R, E>, result: Result<Answer<R>, E>) {
        let more = mem::take(&mut hand.in_hand().delivery.more);
        if more.is_empty() {
            return hand.settle_one(result);
        }
        let size = 1 + more.len() as u64;
        hand.defer();
        hand.guarded(|hand| hand.settle_one(result));
        for held in more {
            let result = hand.put_in_hand(held);
            hand.guarded(|hand| match result {
                Some(result) => hand.settle_one(result.map(Answer::Reply)),
                None if hand.in_hand().delivery.message.is_some() => {
                    hand.retry_alone(DeadLetterReason::Failed, None);
                }
                None => hand.bury(DeadLetterReason::Failed, None),
            });
        }
        hand.go_on(size);
    }

    fn end(&self, hand: &mut dyn Hand<M, R, E>, end: &BatchEnd) -> bool {
        let more = mem::take(&mut hand.in_hand().delivery.more);
        if more.is_empty() {
            return false;
        }
        hand.defer();
        hand.guarded(|hand| hand.end_one(end));
        for held in more {
            hand.put_in_hand(held);
            hand.guarded(|hand| hand.end_one(end));
        }
        hand.go_on(0);
        true
    }
}

impl<M, R, E> dyn Hand<M, R, E> + '_ {
    async fn collect(&mut self, batches: Batches) -> bool {
        let Batches { most, within } = batches;
        let takes_more = most > 1 && !self.is_alone();
        if takes_more && !self.take_more(most) && !within.is_zero() && self.has_key() {
            self.collect_slowly(batches).await;
        }
        *self.in_hand().is_there && self.still_starts()
    }

    /// Waits for more messages.
    async fn collect_slowly(&mut self, Batches { most, within }: Batches) {
        let begun = Instant::now();
        for look in 1..=LOOKS {
            let missing = most - 1 - self.in_hand().delivery.more.len();
            let full = self.wait_for(missing);
            let until = begun + within * look / LOOKS;
            let _ = tokio::time::timeout_at(until, full.notified()).await;
            self.look_again();
            if self.take_more(most) || !self.still_starts() {
                return;
            }
        }
    }

    fn is_alone(&mut self) -> bool {
        self.in_hand().delivery.extra.as_ref().is_some_and(|extra| extra.next.alone)
    }

    /// Takes messages up to `most`, with the first, or until the batch has its size in
    /// bytes. True if it is full.
    fn take_more(&mut self, most: usize) -> bool {
        let mut bytes = self.bytes();
        loop {
            let HeldMessages { delivery, bound, .. } = self.in_hand();
            let more = delivery.more.len();
            let is_full = 1 + more >= most || bound.is_some_and(|bound| bound.is_full(bytes));
            if is_full || self.has_to_end() {
                return true;
            }
            if !self.add() {
                return false;
            }
            let HeldMessages { delivery, bound, .. } = self.in_hand();
            if let (Some(bound), Some(added)) = (bound, delivery.more.get(more)) {
                bytes = bytes.saturating_add(bound.of(added.delivery.message.as_ref()));
            }
        }
    }

    /// Bytes in hand, if they count.
    fn bytes(&mut self) -> usize {
        let HeldMessages { delivery, bound: Some(bound), .. } = self.in_hand() else { return 0 };
        let mut bytes = bound.of(delivery.message.as_ref());
        for held in &delivery.more {
            bytes = bytes.saturating_add(bound.of(held.delivery.message.as_ref()));
        }
        bytes
    }

    /// Puts another message in hand, unless its caller has gone. False if none waits.
    fn add(&mut self) -> bool {
        let HeldMessages { delivery, spare, measurement, slot_state, clock, .. } = self.in_hand();
        let more = mem::take(&mut delivery.more);
        let first = mem::replace(delivery, Delivery::empty(clock.start()));
        let (first_spare, measured) = (spare.take(), measurement.take());
        let since = slot_state.busy_since(|| clock.shown());
        // Beginning a message may copy it, which is user code; messages collected before stay
        // complete whatever happens there.
        let begun = catch_unwind(AssertUnwindSafe(|| self.begin_next()));
        let taken = begun.unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            discard(panic);
            // The key is still that of the others.
            *self.in_hand().measurement = None;
            self.bury(DeadLetterReason::Panicked, Some(message));
            Some(Taken::Skipped)
        });
        let HeldMessages { delivery, spare, is_there, measurement, slot_state, .. } =
            self.in_hand();
        let second = mem::replace(delivery, first);
        let second_spare = mem::replace(spare, first_spare);
        (*is_there, *measurement) = (true, measured);
        slot_state.set_busy_since(since.map_or(0, |since| since.nanos()));
        delivery.more = more;
        if taken == Some(Taken::InHand) {
            slot_state.add_messages(1);
            let held = BatchItem { delivery: second, spare: second_spare, result: None };
            delivery.more.push(held);
        }
        taken.is_some()
    }

    fn put_in_hand(&mut self, held: BatchItem<M, R, E>) -> Option<Result<R, E>> {
        let HeldMessages { delivery, spare, is_there, slot_state, clock, .. } = self.in_hand();
        *delivery = held.delivery;
        *spare = held.spare;
        *is_there = true;
        slot_state.remove_message();
        slot_state.set_busy_since(clock.shown());
        held.result
    }

    /// Settles one message. If the policy panics, the message is a dead letter, and the
    /// others are still settled.
    fn guarded(&mut self, settle: impl FnOnce(&mut Self)) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| settle(self))) else { return };
        let message = panic_message(&*panic);
        discard(panic);
        tracing::error!(panic = message, "settling a message of a batch panicked");
        if *self.in_hand().is_there {
            self.bury(DeadLetterReason::Panicked, Some(message));
        }
    }

    fn end_one(&mut self, end: &BatchEnd) {
        match end {
            BatchEnd::Panicked(panic) => {
                self.retry_alone(DeadLetterReason::Panicked, Some(panic.clone()));
            }
            BatchEnd::TimedOut => self.retry_alone(DeadLetterReason::TimedOut, None),
            BatchEnd::Killed if self.in_hand().begins_later => self.put_off(),
            BatchEnd::Killed => self.retry_alone(DeadLetterReason::Killed, None),
            BatchEnd::Stopped => self.return_one(),
        }
    }

    /// True if a message in hand should still be started; the others are withdrawn. Checks all of
    /// them before any is changed.
    fn still_starts(&mut self) -> bool {
        let HeldMessages { delivery, starts_if: Some(starts), .. } = self.in_hand() else {
            return true;
        };
        user_code_follows();
        let starts_first = delivery.message.as_ref().is_none_or(starts);
        let mut starting = Vec::with_capacity(delivery.more.len());
        for held in &delivery.more {
            starting.push(held.delivery.message.as_ref().is_none_or(starts));
        }
        if starts_first && !starting.contains(&false) {
            return true;
        }
        let more = mem::take(&mut delivery.more);
        let mut kept = Vec::new();
        for (held, starts) in more.into_iter().zip(starting) {
            match starts {
                true => kept.push(held),
                false => self.withdraw_item(held),
            }
        }
        self.in_hand().delivery.more = kept;
        if !starts_first {
            self.withdraw_first();
        }
        *self.in_hand().is_there
    }

    /// The first message of a batch is withdrawn: the next one takes its place, if there is one.
    fn withdraw_first(&mut self) {
        let HeldMessages { delivery, slot_state, clock, .. } = self.in_hand();
        let mut more = mem::take(&mut delivery.more);
        let since = slot_state.busy_since(|| clock.shown());
        self.withdraw_one();
        if !more.is_empty() {
            self.put_in_hand(more.remove(0));
            let HeldMessages { delivery, slot_state, .. } = self.in_hand();
            slot_state.set_busy_since(since.map_or(0, |since| since.nanos()));
            delivery.more = more;
        }
    }

    fn withdraw_item(&mut self, held: BatchItem<M, R, E>) {
        let HeldMessages { counters, slot_state, .. } = self.in_hand();
        counters.withdrawn.fetch_add(1, Ordering::Relaxed);
        slot_state.remove_message();
        let BatchItem { delivery, spare, .. } = held;
        let Delivery { message, extra, .. } = delivery;
        if let Some(port) = extra.and_then(|extra| extra.port) {
            port.resolve(CallError::Withdrawn);
        }
        discard((message, spare));
    }
}
