//! What a pool reports about itself: notices and dead letters. Never under one of its locks,
//! because loggers, hooks and wakers run.

use std::{
    hash::Hash,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{Ordering, fence},
    time::Duration,
};

use greenroom_queue::{discard::discard, lock::user_code_follows};
use tokio::time::Instant;

use super::{Core, Queued};
use crate::{
    Actor, DeadLetter, DeadLetterReason, Delivery, ExitReason, PoolEvent,
    pool::{builder::functions::OnDeadLetter, limits::LimitChange},
    pool_events::{LimitChangeReason, ResizeReason, drop_log::Dropped, full_log::Found},
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Core<A, K> {
    pub(crate) fn notify(&self, what: PoolEvent) {
        match (&what, &self.settings.functions.on_parked) {
            // Logged by the receiver, which knows which message it is.
            (PoolEvent::KeyParked, Some(_)) => {
                self.settings.config.notices.emit_unlogged(&self.settings.config.name, what);
            }
            _ => self.settings.config.notices.emit(&self.settings.config.name, what),
        }
    }

    /// A message parks its key.
    pub(crate) fn notify_parked(
        &self,
        message: Option<&mut A::Message>,
        error: Option<&A::Error>,
        panic: Option<&str>,
    ) {
        let Some(tell) = &self.settings.functions.on_parked else { return };
        user_code_follows();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| tell(message, error, panic))) {
            discard(panic);
            let pool = &*self.settings.config.name;
            tracing::error!(pool, "what is told of parked keys panicked");
        }
    }

    /// The pool is to have another size.
    pub(super) fn notify_size(&self, from: usize, to: usize, reason: ResizeReason) {
        if from != to {
            self.notify(PoolEvent::Resized { from, to, reason });
        }
    }

    /// An adaptive limit has changed, or would have.
    pub(crate) fn notify_limit(&self, change: LimitChange) {
        let LimitChange { from, to, reason, mode } = change;
        let reason = LimitChangeReason::Adapted { reason, mode };
        self.notify(PoolEvent::LimitChanged { from, to, reason });
    }

    /// Reports a dead letter. The count comes first, then the port, then the notice, then the hook
    /// or the queue.
    pub(crate) fn report_dead_letter(&self, letter: DeadLetter<A::Message, A::Error>) {
        self.notify_dead_letter(&letter);
        match &self.settings.functions.on_dead_letter {
            Some(hook) => self.hand_to(hook, letter),
            None => discard(self.letters.push(letter)),
        }
    }

    /// A message that waits no more, as its worker would have got it.
    pub(super) fn delivery_of(
        &self,
        entry: Queued<A, K>,
    ) -> Delivery<A::Message, A::Reply, A::Error> {
        let mut delivery = Delivery::empty(self.telemetry.coarse.start());
        entry.put_into(&mut delivery);
        if let Some(extra) = &mut delivery.extra {
            // Its bytes wait no more.
            extra.claim = None;
        }
        delivery
    }

    /// How long ago a message was accepted that waits no more.
    pub(super) fn age_of(&self, entry: &Queued<A, K>) -> Option<Duration> {
        let accepted = entry.extra.as_ref().and_then(|extra| extra.accepted);
        Some(accepted.unwrap_or_else(|| self.telemetry.coarse.at(entry.stamp)).elapsed())
    }

    /// Evicted messages may be as many as are sent: they are reported by their number, as drops.
    /// The reader of the letters logs them.
    fn notify_dead_letter(&self, letter: &DeadLetter<A::Message, A::Error>) {
        if letter.reason == DeadLetterReason::Evicted {
            return;
        }
        let what = PoolEvent::DeadLetter {
            message_type: std::any::type_name::<A::Message>(),
            reason: letter.reason,
            age: letter.age,
            attempts: letter.attempts,
        };
        match self.settings.functions.on_dead_letter {
            Some(_) => self.settings.config.notices.emit_unlogged(&self.settings.config.name, what),
            None => self.notify(what),
        }
    }

    fn hand_to(
        &self,
        hook: &OnDeadLetter<A::Message, A::Error>,
        letter: DeadLetter<A::Message, A::Error>,
    ) {
        user_code_follows();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(letter))) {
            discard(panic);
            tracing::error!(
                pool = &*self.settings.config.name,
                "the dead-letter hook panicked; the letter is lost to it"
            );
        }
    }

    /// A sender has found no room.
    #[cold]
    pub(crate) fn found_full(&self) {
        self.controllers.notify_saturated();
        if self.telemetry.full.is_full() {
            return;
        }
        let now = Instant::now();
        match self.telemetry.full.full(now) {
            Found::Known => return,
            Found::Begun => {}
            Found::ToBeTold => {
                self.notify(PoolEvent::MailboxFull);
                self.telemetry.full.told(now);
            }
        }
        // Workers may have emptied the mailbox since. Pairs with the fence of one that parks: it
        // sees that the mailbox is full, or its starts are seen here.
        fence(Ordering::SeqCst);
        self.notify_if_drained();
    }

    /// A sender has found no room at one worker. If workers pull, that does not concern the pool as
    /// long as it has room.
    #[cold]
    pub(crate) fn found_worker_full(&self) {
        let chosen = self.settings.functions.dispatch.is_some();
        if chosen || self.queue.permits.in_use(self) >= self.queue.permits.capacity() {
            self.found_full();
        }
    }

    /// For a worker that has found nothing to do, behind a fence.
    pub(crate) fn look_if_drained(&self) {
        if self.telemetry.full.is_full() {
            self.notify_if_drained();
        }
    }

    /// For a worker that is about to go on.
    #[cold]
    pub(super) fn look_now_and_then(&self) {
        if self.telemetry.full.may_look(Instant::now()) {
            self.notify_if_drained();
        }
    }

    fn notify_if_drained(&self) {
        let (depth, capacity) = (self.queue.permits.in_use(self), self.queue.permits.capacity());
        if self.has_backlog() {
            return;
        }
        if let Some(full_for) = self.telemetry.full.drained(depth, capacity, Instant::now()) {
            self.notify(PoolEvent::MailboxDrained { full_for });
        }
    }

    /// True while a worker that a policy chooses has no room to speak of, whatever the others have.
    fn has_backlog(&self) -> bool {
        let crowded = |slot| {
            let mailbox = self.mailbox_if_any(slot);
            mailbox.is_some_and(|mailbox| mailbox.waiting() > mailbox.capacity() / 2)
        };
        self.settings.functions.dispatch.is_some()
            && (0..self.membership.mailboxes.len()).any(crowded)
    }

    /// A message was dropped because there was no room.
    pub(super) fn has_dropped(&self) {
        match self.telemetry.drops.dropped(1, Instant::now()) {
            Dropped::Tell(messages) => self.notify(PoolEvent::DroppedByOverflow { messages }),
            Dropped::First => self.clock.notify(),
            Dropped::Counted => {}
        }
    }

    /// For the clock: drops that no further one follows.
    pub(crate) fn notify_due_drops(&self) {
        if let Some(messages) = self.telemetry.drops.due(Instant::now()) {
            self.notify(PoolEvent::DroppedByOverflow { messages });
        }
    }

    /// Once, with the workers that did not let go and how long each has been busy.
    pub(super) fn notify_end(&self, reason: &ExitReason, wedged: &[(usize, Duration)]) {
        // Pairs with itself, and with the store in `end_unheard`: of several stops one
        // tells the end.
        if self.lifecycle.told_end.swap(true, Ordering::SeqCst) {
            return;
        }
        for &(slot, busy_for) in wedged {
            self.notify(PoolEvent::WorkerWedged { slot, busy_for });
        }
        if let Some(messages) = self.telemetry.drops.rest() {
            self.notify(PoolEvent::DroppedByOverflow { messages });
        }
        self.notify(PoolEvent::Stopped { reason: reason.clone() });
    }
}
