//! The reports of a pool about itself: notices and dead letters. Never under one of its locks,
//! because loggers, hooks and wakers run.

use std::{any::Any, time::Duration};

use greenroom_queue::discard::{discard, panic_of};

use super::{Core, Key, Queued};
use crate::{
    Actor, DeadLetter, DeadLetterReason, Delivery, PoolEvent,
    pool::builder::{config::PoolConfig, functions::OnDeadLetter},
};

/// A key is parked.
pub(crate) fn notify_key_parked<A: Actor, K: Key>(core: &Core<A, K>) {
    let PoolConfig { notices, name, .. } = &core.frame.config;
    match &core.settings.functions.on_parked {
        // The receiver logs it, because it knows the message.
        Some(_) => notices.emit_unlogged(name, PoolEvent::KeyParked),
        None => notices.emit(name, PoolEvent::KeyParked),
    }
}

/// Reports that a message parks its key.
pub(crate) fn notify_parked<A: Actor, K: Key>(
    core: &Core<A, K>,
    message: Option<&mut A::Message>,
    error: Option<&A::Error>,
    panic: Option<&str>,
) {
    let Some(tell) = &core.settings.functions.on_parked else { return };
    let mut message = message;
    if let Some(panic) = panic_of(&mut || tell(message.take(), error, panic)) {
        teller_panicked(&core.frame.config.name, panic);
    }
}

/// Reports a dead letter. The count comes first, then the port, then the notice, then the hook
/// or the queue.
pub(crate) fn report_dead_letter<A: Actor, K: Key>(
    core: &Core<A, K>,
    letter: DeadLetter<A::Message, A::Error>,
) {
    notify_dead_letter(core, &letter);
    match &core.settings.functions.on_dead_letter {
        Some(hook) => hand_to(core, hook, letter),
        None => discard(core.letters.push(letter)),
    }
}

/// A message that no longer waits, in the form in which its worker would have got it.
pub(super) fn delivery_of<A: Actor, K: Key>(
    core: &Core<A, K>,
    entry: Queued<A, K>,
) -> Delivery<A::Message, A::Reply, A::Error> {
    let mut delivery = Delivery::empty(core.frame.telemetry.coarse.start());
    entry.put_into(&mut delivery);
    if let Some(extra) = &mut delivery.extra {
        // Its bytes no longer wait.
        extra.claim = None;
    }
    delivery
}

/// How long ago this message, which no longer waits, was accepted.
pub(super) fn age_of<A: Actor, K: Key>(
    core: &Core<A, K>,
    entry: &Queued<A, K>,
) -> Option<Duration> {
    let accepted = entry.extra.as_ref().and_then(|extra| extra.accepted);
    Some(accepted.unwrap_or_else(|| core.frame.telemetry.coarse.at(entry.stamp)).elapsed())
}

/// There may be as many evicted messages as sends, so they are reported as a number of drops. The
/// reader of the letters logs them.
fn notify_dead_letter<A: Actor, K: Key>(
    core: &Core<A, K>,
    letter: &DeadLetter<A::Message, A::Error>,
) {
    if letter.reason == DeadLetterReason::Evicted {
        return;
    }
    let what = PoolEvent::DeadLetter {
        message_type: std::any::type_name::<A::Message>(),
        reason: letter.reason,
        age: letter.age,
        attempts: letter.attempts,
    };
    match core.settings.functions.on_dead_letter {
        Some(_) => core.frame.config.notices.emit_unlogged(&core.frame.config.name, what),
        None => core.frame.notify(what),
    }
}

fn hand_to<A: Actor, K: Key>(
    core: &Core<A, K>,
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
        hook_panicked(&core.frame.config.name, panic);
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
