//! The parts of a batch that depend on the worker that has it in hand (K12). For the rest see
//! [`Batching`](crate::pool::batch::hand::Batching).

use std::{mem, sync::Arc, time::Duration};

use tokio::sync::Notify;

use super::{
    InFlight, Source, Taken,
    fate::{Deferred, Fate},
};
use crate::{
    Actor, Answer, DeadLetterReason,
    pool::{
        batch::hand::{BatchEnd, Hand, HeldMessages},
        core::{
            batch::{expect_more, fetch_into_lane, next_of_batch},
            park::park,
            parked::park_key,
            place::suspend,
        },
        pool_payload::{Entries, Key},
    },
};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// Settles the batch in hand, which has ended in this way. Returns false if there is none.
    pub(super) fn end_batch(&mut self, end: &BatchEnd) -> bool {
        let core = self.worker.core.clone();
        let batching = core.settings.functions.batching.as_deref();
        batching.is_some_and(|batching| batching.end(self, end))
    }
}

impl<A: Actor, K: Key> Hand<A::Message, A::Reply, A::Error> for InFlight<A, K> {
    fn in_hand(&mut self) -> HeldMessages<'_, A::Message, A::Reply, A::Error> {
        let core = &self.worker.core;
        HeldMessages {
            delivery: &mut self.delivery,
            spare: &mut self.spare,
            is_there: &mut self.in_hand,
            measurement: &mut self.measures.measurement,
            begins_later: self.begins_later,
            slot_state: &self.slot_state,
            clock: &core.frame.telemetry.coarse,
            counters: &core.frame.telemetry.counters,
            bound: core.settings.derived.batch_bytes.as_ref(),
            starts_if: core.settings.functions.starts_if.as_deref().map(|starts| &**starts),
        }
    }

    fn has_key(&self) -> bool {
        self.worker.source.has_key()
    }

    fn has_to_end(&self) -> bool {
        self.is_over()
    }

    fn begin_next(&mut self) -> Option<Taken> {
        let source = self.worker.source;
        let entry = next_of_batch(&self.worker.core, self.worker.slot, source)?;
        Some(self.begin(source, entry))
    }

    fn wait_for(&mut self, messages: usize) -> Arc<Notify> {
        self.worker.source = suspend(&self.worker.core.queue, self.worker.slot, self.worker.source);
        self.worker.rest();
        expect_more(&self.worker.core, self.worker.source, messages).unwrap_or_default()
    }

    fn look_again(&mut self) {
        self.worker.return_to_work();
        fetch_into_lane(&self.worker.core, self.worker.slot, self.worker.source);
    }

    fn settle_one(&mut self, result: Result<Answer<A::Reply>, A::Error>) {
        self.settle(result);
    }

    fn retry_alone(&mut self, reason: DeadLetterReason, panic: Option<String>) {
        self.attempt_alone(reason, panic);
    }

    fn bury(&mut self, reason: DeadLetterReason, panic: Option<String>) {
        self.dead_letter(reason, None, panic);
    }

    fn withdraw_one(&mut self) {
        self.withdraw();
    }

    fn put_off(&mut self) {
        self.begin_later();
    }

    fn return_one(&mut self) {
        self.return_message();
    }

    fn defer(&mut self) {
        self.rare.deferred = Some(Vec::new());
    }

    fn go_on(&mut self, handled: u64) {
        let mut deferred = self.rare.deferred.take().unwrap_or_default();
        let sample = self.measures.sample.take();
        if deferred.is_empty() {
            if let Some((stands_for, took)) = sample
                && handled > 0
            {
                self.feed_sketch(u64::from(stands_for), handled, took);
            }
            return;
        }
        let source = mem::replace(&mut self.worker.source, Source::None);
        let (mut entries, mut after) = (Entries::<A, K>::new(), Duration::ZERO);
        let mut parked = None;
        for Deferred { entry, fate } in &mut deferred {
            match fate {
                Fate::Retry(wait) => after = after.max(*wait),
                Fate::Park(failed) => {
                    parked.get_or_insert_with(|| failed.clone());
                }
            }
            if let Some(entry) = entry.take() {
                entries.push_back(entry);
            }
        }
        self.worker.source = match parked {
            Some(failed) => park_key(&self.worker.core, self.worker.slot, source, entries, failed),
            None => park(&self.worker.core, self.worker.slot, source, entries, after),
        };
    }
}
