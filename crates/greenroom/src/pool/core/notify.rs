//! What a pool reports about itself: notices and dead letters. Never under one of its locks,
//! because loggers, hooks and wakers run.

use std::{any::Any, time::Duration};

use greenroom_queue::discard::{discard, panic_of};

use super::{Core, Key, Queued};
use crate::{
    Actor, DeadLetter, DeadLetterReason, Delivery, PoolEvent,
    pool::builder::{config::PoolConfig, functions::OnDeadLetter},
};

impl<A: Actor, K: Key> Core<A, K> {
    /// A key is parked.
    pub(crate) fn notify_key_parked(&self) {
        let PoolConfig { notices, name, .. } = &self.frame.config;
        match &self.settings.functions.on_parked {
            // Logged by the receiver, which knows which message it is.
            Some(_) => notices.emit_unlogged(name, PoolEvent::KeyParked),
            None => notices.emit(name, PoolEvent::KeyParked),
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
        let mut message = message;
        if let Some(panic) = panic_of(&mut || tell(message.take(), error, panic)) {
            teller_panicked(&self.frame.config.name, panic);
        }
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
        let mut delivery = Delivery::empty(self.frame.telemetry.coarse.start());
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
        Some(accepted.unwrap_or_else(|| self.frame.telemetry.coarse.at(entry.stamp)).elapsed())
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
            Some(_) => self.frame.config.notices.emit_unlogged(&self.frame.config.name, what),
            None => self.frame.notify(what),
        }
    }

    fn hand_to(
        &self,
        hook: &OnDeadLetter<A::Message, A::Error>,
        letter: DeadLetter<A::Message, A::Error>,
    ) {
        let mut letter = Some(letter);
        let mut hand = || {
            if let Some(letter) = letter.take() {
                hook(letter);
            }
        };
        if let Some(panic) = panic_of(&mut hand) {
            hook_panicked(&self.frame.config.name, panic);
        }
    }
}

fn teller_panicked(pool: &str, panic: Box<dyn Any + Send>) {
    discard(panic);
    tracing::error!(pool, "what is told of parked keys panicked");
}

fn hook_panicked(pool: &str, panic: Box<dyn Any + Send>) {
    discard(panic);
    tracing::error!(pool, "the dead-letter hook panicked; the letter is lost to it");
}
