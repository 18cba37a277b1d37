//! The fate of the message in hand: one outcome, whatever happens.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use greenroom_queue::{
    discard::{discard, panic_of},
    entry::Entry,
    lock::user_code_follows,
    stamp::Stamp,
};

use super::{
    InFlight, Source,
    fate::{Deferred, Fate},
    withdrawn::is_unwanted,
};
use crate::{
    Actor, Answer, CallError, DeadLetter, DeadLetterReason, Delivery, ExitReason, FailureAction,
    delivery::Marks,
    failure::{Cause, FailedAttempt},
    pool::{
        core::{
            ExtraOf,
            keys::feed_sketch,
            notify::{notify_parked, report_dead_letter},
            park::park,
            parked::park_key,
        },
        failed::Failed,
        frame::{end::end, exit::stop_because, task_guard::start_clock},
        limits::Outcome,
        pool_payload::{Entries, Key, Queued},
        stats::{counters::count, sketch::FED},
    },
};

impl<A: Actor, K: Key> InFlight<A, K> {
    /// This many messages were in hand together, for this long. If all are measured, some of them
    /// represent the others here.
    pub(super) fn feed_sketch(&mut self, stands_for: u64, messages: u64, took: Duration) {
        self.measures.unfed = self.measures.unfed.wrapping_add(1);
        let times = match stands_for {
            1 if !u64::from(self.measures.unfed).is_multiple_of(FED) => return,
            1 => FED,
            many => many,
        };
        feed_sketch(
            &self.worker.core,
            self.worker.source,
            messages * times,
            took.saturating_mul(times as u32),
        );
    }

    /// `done` is true if the message is not retried.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn out_of_hand(&mut self, done: bool) {
        self.in_hand = false;
        if self.measures.measurement.is_some() {
            measured(self, done);
        }
        self.slot_state.set_free();
    }

    /// Like `settle`, but without a call if it was a send that succeeded and whose handler has
    /// consumed the message. It returns true then: the slot stays busy, for the next message of the
    /// run or until the caller ends it. A caller that waits for a reply finds the slot free.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn settle_in_run(&mut self, result: Result<Answer<A::Reply>, A::Error>) -> bool {
        let delivery = &self.delivery;
        let left = delivery.message.is_some() | delivery.extra.is_some() | self.spare.is_some();
        match result {
            Ok(answer) if !left & delivery.marks.is_empty() => {
                count(&self.slot_state.counters.handled);
                self.in_hand = false;
                if self.measures.measurement.is_some() {
                    measured(self, true);
                }
                discard(answer);
                true
            }
            result => {
                self.settle(result);
                false
            }
        }
    }

    /// Settles an attempt that returned.
    pub(crate) fn settle(&mut self, mut result: Result<Answer<A::Reply>, A::Error>) {
        if let Ok(Answer::Reply(reply)) = result {
            let left = self.delivery.message.is_some() | self.spare.is_some();
            match self.delivery.marks {
                Marks::BY_HANDOFF => return answered(self, reply),
                Marks::NONE if !left => return replied(self, reply),
                _ => result = Ok(Answer::Reply(reply)),
            }
        }
        self.delivery.open_port();
        let marks = self.delivery.marks;
        match result {
            Ok(answer) if marks.has(Marks::PUT_BACK) => {
                discard(answer);
                if let Some(put_back) = self.rare.put_back {
                    put_back(self);
                }
            }
            Ok(answer) => handled(self, answer),
            Err(error) if marks.has(Marks::FORWARDED) => {
                discard(error);
                handled(self, Answer::Deferred);
            }
            Err(error) => {
                self.outcome = Outcome::Rejected;
                let crashed = self.delivery.marks.remove(Marks::CRASHED);
                if crashed && kills(self) >= self.worker.core.frame.config.failure.poison_limit {
                    return poisoned(self, Some(error), None);
                }
                let cause = if crashed { Cause::Crash(&error) } else { Cause::Error(&error) };
                let verdict = ask_policy(self, cause);
                let reason = DeadLetterReason::Failed;
                let error = Some(error);
                follow(self, verdict, Failure { reason, error, panic: None, killed: crashed });
            }
        }
    }

    /// Ends the time in hand. Returns the message left in place, or the spare copy.
    pub(super) fn finish(&mut self) -> (Option<A::Message>, Option<Box<ExtraOf<A>>>) {
        let message = self.take_message();
        self.out_of_hand(true);
        (message, self.delivery.extra.take())
    }

    pub(super) fn take_message(&mut self) -> Option<A::Message> {
        let spare = self.spare.take();
        let Some(message) = self.delivery.message.take() else { return spare };
        discard(spare);
        Some(message)
    }

    pub(super) fn dead_letter(
        &mut self,
        reason: DeadLetterReason,
        error: Option<A::Error>,
        panic: Option<String>,
    ) {
        self.slot_state.counters.dead_letters.count(reason);
        let attempts = match reason {
            DeadLetterReason::Abandoned | DeadLetterReason::Expired => self.delivery.attempt() - 1,
            _ => self.delivery.attempt(),
        };
        let kills = kills(self);
        let age = Some(self.delivery.queued_for());
        let (message, extra) = self.finish();
        let port = extra.and_then(|extra| extra.port);
        let mut letter = DeadLetter { message, reason, error, panic, attempts, age };
        if let Some(port) = port {
            // Pairs with the store of `end`, which comes before a stop aborts this worker:
            // otherwise the caller would learn that the worker was killed, not that the pool
            // stopped.
            let has_ended = self.worker.core.frame.lifecycle.ended.load(Ordering::SeqCst);
            port.resolve(call_error(&mut letter, kills, has_ended));
        }
        report_dead_letter(&self.worker.core, letter);
    }

    /// The message in hand has not been started, and nothing has failed: it goes back to the head
    /// of its key's line.
    pub(super) fn begin_later(&mut self) {
        let accepted = self.delivery.queued_at();
        let (urgent, stamp) = (self.delivery.class.is_urgent(), self.delivery.came_at());
        let Some(message) = self.take_message() else {
            return self.dead_letter(DeadLetterReason::Killed, None, None);
        };
        let mut extra = self.delivery.extra.take().unwrap_or_else(ExtraOf::<A>::without_port);
        extra.accepted = Some(accepted);
        extra.next.parked = true;
        self.out_of_hand(false);
        let entry = Entry { message, extra: Some(extra), key: None, hash: 0, urgent, stamp };
        go_back(self, entry, Duration::ZERO);
    }

    /// For a batch that failed without a known culprit: attempts each message alone.
    pub(super) fn attempt_alone(&mut self, reason: DeadLetterReason, panic: Option<String>) {
        self.outcome = match reason {
            DeadLetterReason::TimedOut => Outcome::TimedOut,
            _ => Outcome::Rejected,
        };
        let failure = Failure { reason, error: None, panic, killed: false };
        self.alone = true;
        retry(self, Duration::ZERO, false, failure);
        self.alone = false;
    }

    pub(super) fn settle_panic(&mut self, panic: String) {
        self.delivery.open_port();
        self.delivery.marks.remove(Marks::CRASHED);
        if self.delivery.marks.has(Marks::FORWARDED) {
            return handled(self, Answer::Deferred);
        }
        if kills(self) >= self.worker.core.frame.config.failure.poison_limit {
            return poisoned(self, None, Some(panic));
        }
        let verdict = decide(self, Cause::Panic(&panic));
        let reason = DeadLetterReason::Panicked;
        follow(self, verdict, Failure { reason, error: None, panic: Some(panic), killed: true });
    }

    /// The worker was killed with the message in hand. The message is not at fault: it does not
    /// count as one that kills.
    pub(super) fn settle_kill(&mut self) {
        self.delivery.open_port();
        self.delivery.marks.remove(Marks::CRASHED);
        if self.delivery.marks.has(Marks::FORWARDED) {
            return handled(self, Answer::Deferred);
        }
        // An adopted worker's message is on its way to the other end, unless it has arrived.
        if self.begins_later || self.slot_state.details.lock().adopted.is_some() {
            return self.begin_later();
        }
        let verdict = decide(self, Cause::Kill);
        let reason = DeadLetterReason::Killed;
        follow(self, verdict, Failure { reason, error: None, panic: None, killed: false });
    }

    /// The handler did not return within the pool's limit, and was dropped.
    pub(crate) fn timed_out(&mut self, limit: Duration) {
        self.delivery.open_port();
        self.delivery.marks.remove(Marks::CRASHED);
        self.outcome = Outcome::TimedOut;
        if self.delivery.marks.has(Marks::FORWARDED) {
            return handled(self, Answer::Deferred);
        }
        let verdict = ask_policy(self, Cause::Timeout(limit));
        let reason = DeadLetterReason::TimedOut;
        follow(self, verdict, Failure { reason, error: None, panic: None, killed: false });
    }

    /// The worker is dropped with a message in hand, at the deadline of a stop or with its runtime;
    /// or the message would be retried, and the pool has ended.
    pub(super) fn return_message(&mut self) {
        self.delivery.open_port();
        if self.delivery.marks.has(Marks::FORWARDED) {
            return handled(self, Answer::Deferred);
        }
        if self.delivery.message.is_none() && self.spare.is_none() {
            return self.dead_letter(DeadLetterReason::Killed, None, None);
        }
        count(&self.slot_state.counters.returned);
        let (class, stamp) = (self.delivery.class, self.delivery.stamp);
        let (message, extra) = self.finish();
        let start = self.delivery.start;
        let delivery = Delivery { message, extra, class, stamp, ..Delivery::empty(start) };
        self.worker.core.left_over.give_back(vec![delivery]);
    }
}

#[cold]
fn measured<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, done: bool) {
    if let Some(measurement) = in_flight.measures.measurement.take() {
        let stands_for = measurement.stands_for();
        let now = in_flight.worker.core.frame.telemetry.coarse.real();
        let took = measurement.end(now, &in_flight.worker.core.frame.telemetry.measured);
        let polls = in_flight.worker.polls.take();
        match (done && in_flight.worker.core.keyed(), in_flight.rare.deferred.is_some()) {
            (true, false) => in_flight.feed_sketch(stands_for, 1, took),
            // Other messages of a batch may still need the key.
            (true, true) => in_flight.measures.sample = Some((stands_for as u32, took)),
            _ => {}
        }
        if in_flight.worker.core.frame.config.handling.quick.is_some() {
            return;
        }
        let computed = polls.as_ref().map_or(took, |polls| polls.computed(now));
        in_flight.worker.core.frame.telemetry.coarse.note_pace(computed);
        if in_flight.worker.core.keyed() {
            // If a message waits, its shard is not left to a single worker, however little that
            // worker computes.
            let has_waited = polls.is_some_and(|polls| polls.has_waited());
            let is_quick =
                !has_waited && in_flight.worker.core.frame.telemetry.coarse.measures_few();
            in_flight.worker.core.queue.wake.set_quick(is_quick);
        }
    }
}

/// Nothing is left of the message, and there are no marks.
#[inline]
fn replied<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, reply: A::Reply) {
    count(&in_flight.slot_state.counters.handled);
    in_flight.out_of_hand(true);
    let Some(mut extra) = in_flight.delivery.extra.take() else { return discard(reply) };
    let port = extra.port.take();
    // The sender's metadata is dropped before the reply arrives.
    drop(extra);
    match port {
        Some(port) => discard(port.reply(reply)),
        None => discard(reply),
    }
}

/// Acts on the verdict about a failed attempt.
fn follow<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    verdict: FailureAction,
    failure: Failure<A::Error>,
) {
    let waits = matches!(verdict, FailureAction::Retry { .. } | FailureAction::ParkKey);
    if waits && is_unwanted(in_flight) {
        in_flight.withdraw();
        return discard(failure.error);
    }
    match verdict {
        FailureAction::Retry { after, counted } => retry(in_flight, after, counted, failure),
        FailureAction::DeadLetter => end_as_dead_letter(in_flight, failure),
        FailureAction::Drop => {
            count(&in_flight.slot_state.counters.dropped);
            discard(in_flight.finish());
            discard(failure.error);
        }
        FailureAction::Return => match failure.error {
            Some(error) if in_flight.delivery.is_call() => give_back(in_flight, error),
            error => end_as_dead_letter(in_flight, Failure { error, ..failure }),
        },
        FailureAction::ParkKey => park_in_hand(in_flight, failure),
        FailureAction::StopPool => {
            // Nothing is started from now on, and certainly not with this key.
            stop_because(&in_flight.worker.core.erased(), failure.exit_reason());
            end(&*in_flight.worker.core);
            end_as_dead_letter(in_flight, failure);
        }
    }
}

/// The message has killed as many workers as it may.
fn poisoned<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    error: Option<A::Error>,
    panic: Option<String>,
) {
    let reason = DeadLetterReason::Poisoned;
    match finally(in_flight) {
        FailureAction::Return => in_flight.dead_letter(reason, error, panic),
        verdict => follow(in_flight, verdict, Failure { reason, error, panic, killed: true }),
    }
}

fn end_as_dead_letter<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    failure: Failure<A::Error>,
) {
    in_flight.dead_letter(failure.reason, failure.error, failure.panic);
}

/// The handler has replied to a caller that waits at the handoff slot.
fn answered<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, reply: A::Reply) {
    count(&in_flight.slot_state.counters.handled);
    in_flight.delivery.marks = Marks::NONE;
    in_flight.out_of_hand(true);
    if let Some(handoff_slot) = &in_flight.delivery.handoff_slot
        && let Err(unwanted) = handoff_slot.answer(reply)
    {
        discard(unwanted);
    }
    // The message has no other parts: metadata opens a port.
    if in_flight.delivery.message.is_some() | in_flight.spare.is_some() {
        discard(in_flight.take_message());
    }
}

fn handled<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, answer: Answer<A::Reply>) {
    count(&in_flight.slot_state.counters.handled);
    in_flight.delivery.marks.remove(Marks::CRASHED);
    if in_flight.delivery.marks.remove(Marks::FORWARDED) {
        count(&in_flight.slot_state.counters.forwarded);
    }
    let (message, extra) = in_flight.finish();
    match (answer, extra.and_then(|extra| extra.port)) {
        (Answer::Reply(reply), Some(port)) => discard(port.reply(reply)),
        (answer, port) => discard((answer, port)),
    }
    discard(message);
}

fn give_back<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, error: A::Error) {
    count(&in_flight.slot_state.counters.failed);
    let (message, extra) = in_flight.finish();
    if let Some(port) = extra.and_then(|extra| extra.port) {
        port.fail(error);
    }
    discard(message);
}

/// Retries the message. If the message is gone, it is a dead letter.
fn retry<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    after: Duration,
    counted: bool,
    failure: Failure<A::Error>,
) {
    let Some(message) = in_flight.take_message() else {
        return end_as_dead_letter(in_flight, failure);
    };
    // After a stale `false` the message waits for a retry, and `give_back_queued` finds it there,
    // at the latest when the last task ends.
    if in_flight.worker.core.frame.lifecycle.ended.load(Ordering::Relaxed) {
        discard(failure.error);
        in_flight.delivery.message = Some(message);
        return in_flight.return_message();
    }
    let extra = failed_extra(in_flight, counted, failure);
    in_flight.out_of_hand(false);
    count(&in_flight.slot_state.counters.retries);
    let urgent = in_flight.delivery.class.is_urgent();
    let due = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
    let stamp =
        Stamp::coarse(in_flight.worker.core.frame.telemetry.coarse.timely().saturating_add(due));
    let entry = Entry { message, extra: Some(extra), key: None, hash: 0, urgent, stamp };
    go_back(in_flight, entry, after);
}

/// The message waits at the head of its key's line until it is due.
fn go_back<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, entry: Queued<A, K>, after: Duration) {
    start_clock(&in_flight.worker.core.erased());
    if let Some(deferred) = &mut in_flight.rare.deferred {
        return deferred.push(Deferred { entry: Some(entry), fate: Fate::Retry(after) });
    }
    let source = std::mem::replace(&mut in_flight.worker.source, Source::None);
    let entries = Entries::<A, K>::only(entry);
    in_flight.worker.source =
        park(&in_flight.worker.core, in_flight.worker.slot, source, entries, after);
}

/// The extra parts of a message that has failed and waits.
fn failed_extra<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    counted: bool,
    failure: Failure<A::Error>,
) -> Box<ExtraOf<A>> {
    let accepted = in_flight.delivery.queued_at();
    let mut extra = in_flight.delivery.extra.take().unwrap_or_else(ExtraOf::<A>::without_port);
    extra.accepted = Some(accepted);
    extra.attempts += 1;
    extra.next.parked = true;
    extra.failures += u32::from(counted);
    extra.kills += u32::from(failure.killed);
    extra.failed = Some(failure.kept(in_flight.worker.slot));
    extra.next.alone |= in_flight.alone;
    extra
}

/// Parks the message for an operator, at the head of its key's line. If the message is gone, it is
/// a dead letter, and the key still waits. Without a key, or if the pool has ended, it is a dead
/// letter.
#[cold]
fn park_in_hand<A: Actor, K: Key>(in_flight: &mut InFlight<A, K>, failure: Failure<A::Error>) {
    let has_key = in_flight.worker.source.has_key();
    // After a stale `false` the message waits behind its parked key, and `give_back_queued` finds
    // it there, at the latest when the last task ends.
    if !has_key || in_flight.worker.core.frame.lifecycle.ended.load(Ordering::Relaxed) {
        return end_as_dead_letter(in_flight, failure);
    }
    let mut message = in_flight.take_message();
    let (error, panic) = (failure.error.as_ref(), failure.panic.as_deref());
    notify_parked(&in_flight.worker.core, message.as_mut(), error, panic);
    let Some(message) = message else {
        let kept = Failed::new(failure.reason, None, failure.panic.clone(), in_flight.worker.slot);
        // First, because settling gives up the key.
        park_with(in_flight, None, kept);
        return end_as_dead_letter(in_flight, failure);
    };
    let mut extra = failed_extra(in_flight, true, failure);
    extra.next.for_good = true;
    let (port, failed) = (extra.port.take(), extra.failed.clone());
    let (urgent, stamp) = (in_flight.delivery.class.is_urgent(), in_flight.delivery.came_at());
    let entry = Entry { message, extra: Some(extra), key: None, hash: 0, urgent, stamp };
    in_flight.out_of_hand(false);
    match failed {
        Some(failed) => park_with(in_flight, Some(entry), failed),
        None => debug_assert!(false, "what has failed says of what"),
    }
    if let Some(port) = port {
        port.resolve(CallError::Parked);
    }
}

/// Parks the key in hand, and the message, if there is one.
fn park_with<A: Actor, K: Key>(
    in_flight: &mut InFlight<A, K>,
    entry: Option<Queued<A, K>>,
    failed: Arc<Failed<A::Error>>,
) {
    if let Some(deferred) = &mut in_flight.rare.deferred {
        return deferred.push(Deferred { entry, fate: Fate::Park(failed) });
    }
    let mut entries = Entries::<A, K>::new();
    if let Some(entry) = entry {
        entries.push_back(entry);
    }
    let source = std::mem::replace(&mut in_flight.worker.source, Source::None);
    in_flight.worker.source =
        park_key(&in_flight.worker.core, in_flight.worker.slot, source, entries, failed);
}

/// The action if no further attempt is made.
fn finally<A: Actor, K: Key>(in_flight: &InFlight<A, K>) -> FailureAction {
    let finally = in_flight.worker.core.frame.config.failure.finally;
    finally.map_or(FailureAction::DeadLetter, FailureAction::from)
}

/// The action of the policy; if the policy panics, the action if no further attempt is made.
fn decide<A: Actor, K: Key>(
    in_flight: &InFlight<A, K>,
    cause: Cause<'_, A::Error>,
) -> FailureAction {
    let (mut decided, mut cause) = (finally(in_flight), Some(cause));
    let mut ask = || {
        if let Some(cause) = cause.take() {
            decided = ask_policy(in_flight, cause);
        }
    };
    discard(panic_of(&mut ask));
    decided
}

/// The action of the policy. A panic in the policy counts as one of the handler.
fn ask_policy<A: Actor, K: Key>(
    in_flight: &InFlight<A, K>,
    cause: Cause<'_, A::Error>,
) -> FailureAction {
    user_code_follows();
    let core = &in_flight.worker.core;
    let attempt = FailedAttempt { cause, failures: in_flight.delivery.failures() + 1 };
    core.settings.functions.policy.decide(attempt, core.frame.env.chance.fraction())
}

/// The number of workers that died with this message in hand, including this one.
fn kills<A: Actor, K: Key>(in_flight: &InFlight<A, K>) -> u32 {
    in_flight.delivery.extra.as_ref().map_or(1, |extra| extra.kills + 1)
}

/// How an attempt has failed.
struct Failure<E> {
    reason: DeadLetterReason,
    /// The handler's error.
    error: Option<E>,
    /// The message of the handler's panic.
    panic: Option<String>,
    /// Its worker, or the process behind the handler, has died of it.
    killed: bool,
}

impl<E> Failure<E> {
    fn kept(self, worker: usize) -> Arc<Failed<E>> {
        Failed::new(self.reason, self.error, self.panic, worker)
    }

    /// The exit reason of a pool that stops because of it.
    fn exit_reason(&self) -> ExitReason {
        ExitReason::failed(match (&self.panic, self.reason) {
            (Some(panic), _) => format!("a message failed for good: its handler panicked: {panic}"),
            (None, DeadLetterReason::TimedOut) => {
                "a message failed for good: its handler took too long".to_owned()
            }
            (None, DeadLetterReason::Killed) => {
                "a message failed for good: its worker was killed".to_owned()
            }
            (None, _) => "a message failed for good".to_owned(),
        })
    }
}

/// `has_ended` is true if the pool has ended.
fn call_error<M, E>(letter: &mut DeadLetter<M, E>, kills: u32, has_ended: bool) -> CallError<E> {
    match letter.reason {
        DeadLetterReason::Poisoned => CallError::Poisoned { kills },
        DeadLetterReason::Panicked => CallError::Panicked(letter.panic.clone().unwrap_or_default()),
        DeadLetterReason::Failed => match letter.error.take() {
            Some(error) => CallError::Failed(error),
            None => CallError::Dropped,
        },
        DeadLetterReason::NoWorkers => CallError::NoWorkers,
        DeadLetterReason::Killed if has_ended => CallError::Stopped,
        DeadLetterReason::Killed => CallError::Killed,
        DeadLetterReason::Abandoned => CallError::Dropped,
        DeadLetterReason::Evicted => CallError::Evicted,
        DeadLetterReason::Expired => CallError::Expired,
        DeadLetterReason::TimedOut => CallError::TimedOut,
    }
}
