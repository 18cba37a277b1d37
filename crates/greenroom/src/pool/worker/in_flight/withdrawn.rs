//! Messages that are not to be started (any more) when their turn has come.

use std::{
    hash::Hash,
    iter, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::Ordering,
};

use greenroom_queue::{discard::discard, lock::user_code_follows};

use super::InFlight;
use crate::{Actor, CallError, Delivery, delivery::BatchItem, pool::core::ExtraOf};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> InFlight<A, K> {
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
        let message = self.delivery.message.as_ref().or(self.spare.as_ref());
        let asks = || message.is_some_and(|message| !self.is_wanted(message));
        let asks = self.worker.core.settings.functions.starts_if.is_some().then_some(asks);
        user_code_follows();
        asks.is_some_and(|asks| {
            catch_unwind(AssertUnwindSafe(asks)).unwrap_or_else(|panic| {
                discard(panic);
                false
            })
        })
    }

    /// Runs user code.
    fn is_wanted(&self, message: &A::Message) -> bool {
        self.worker.core.settings.functions.starts_if.as_ref().is_none_or(|wanted| wanted(message))
    }

    /// As `still_starts`, for each message of a batch; true if one is left. Asks about all before
    /// any of them is touched.
    pub(crate) fn batch_still_starts(&mut self) -> bool {
        if self.worker.core.settings.functions.starts_if.is_none() {
            return true;
        }
        user_code_follows();
        let others = self.delivery.more.iter().map(|held| &held.delivery);
        let wanted: Vec<bool> = iter::once(&self.delivery)
            .chain(others)
            .map(|held| held.message.as_ref().is_none_or(|message| self.is_wanted(message)))
            .collect();
        if wanted.iter().all(|wanted| *wanted) {
            return true;
        }
        let more = mem::take(&mut self.delivery.more);
        let (mut kept, mut withdrawn) = (Vec::new(), Vec::new());
        for (held, is_wanted) in more.into_iter().zip(&wanted[1..]) {
            let part = if *is_wanted { &mut kept } else { &mut withdrawn };
            part.push(held);
        }
        withdrawn.into_iter().for_each(|held| self.withdraw_item(held));
        self.delivery.more = kept;
        if !wanted[0] {
            self.withdraw_first();
        }
        self.in_hand
    }

    /// The first message of a batch is withdrawn: the next one takes its place, if there is one.
    fn withdraw_first(&mut self) {
        let mut more = mem::take(&mut self.delivery.more).into_iter();
        let since = self.slot_state.busy_since(|| self.worker.core.telemetry.coarse.shown());
        self.withdraw();
        if let Some(next) = more.next() {
            self.put_in_hand(next);
            self.slot_state.set_busy_since(since.map_or(0, |since| since.nanos()));
            self.delivery.more = more.collect();
        }
    }

    /// The message in hand is not started: that is its outcome.
    #[cold]
    pub(super) fn withdraw(&mut self) {
        // It tells nothing of how long others take.
        (self.measures.measurement, self.worker.polls) = (None, None);
        self.delivery.open_port();
        self.worker.core.telemetry.counters.withdrawn.fetch_add(1, Ordering::Relaxed);
        let (message, extra) = self.finish();
        resolve::<A>(extra);
        discard(message);
    }

    fn withdraw_item(&mut self, held: BatchItem<A::Message, A::Reply, A::Error>) {
        self.worker.core.telemetry.counters.withdrawn.fetch_add(1, Ordering::Relaxed);
        self.slot_state.remove_message();
        let BatchItem { delivery, spare, .. } = held;
        let Delivery { message, extra, .. } = delivery;
        resolve::<A>(extra);
        discard((message, spare));
    }
}

fn resolve<A: Actor>(extra: Option<Box<ExtraOf<A>>>) {
    if let Some(port) = extra.and_then(|extra| extra.port) {
        port.resolve(CallError::Withdrawn);
    }
}
