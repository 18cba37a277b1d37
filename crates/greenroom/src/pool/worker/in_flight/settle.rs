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
};
use crate::{
    Actor, Answer, CallError, DeadLetter, DeadLetterReason, Delivery, ExitReason, FailureAction,
    delivery::Marks,
    failure::{Cause, FailedAttempt},
    pool::{
        core::ExtraOf,
        failed::Failed,
        frame::{end::end, exit::stop_because, task_guard::start_clock},
        limits::Outcome,
        pool_payload::{Entries, Key, Queued},
        stats::{counters::count, sketch::FED},
    },
};

impl<A: Actor, K: Key> InFlight<A, K> {
    #[cold]
    fn measured(&mut self, done: bool) {
        if let Some(measurement) = self.measures.measurement.take() {
            let stands_for = measurement.stands_for();
            let now = self.worker.core.frame.telemetry.coarse.real();
            let took = measurement.end(now, &self.worker.core.frame.telemetry.measured);
            let polls = self.worker.polls.take();
            match (done && self.worker.core.keyed(), self.rare.deferred.is_some()) {
                (true, false) => self.feed_sketch(stands_for, 1, took),
                // Of a batch, others may still need the key.
                (true, true) => self.measures.sample = Some((stands_for as u32, took)),
                _ => {}
            }
            if self.worker.core.frame.config.handling.quick.is_some() {
                return;
            }
            let computed = polls.as_ref().map_or(took, |polls| polls.computed(now));
            self.worker.core.frame.telemetry.coarse.note_pace(computed);
            if self.worker.core.keyed() {
                // Behind a message that waits, a shard is not left to a single worker,
                // however little it computes.
                let has_waited = polls.is_some_and(|polls| polls.has_waited());
                let is_quick =
                    !has_waited && self.worker.core.frame.telemetry.coarse.measures_few();
                self.worker.core.queue.wake.set_quick(is_quick);
            }
        }
    }

    /// This many messages were in hand together, for this long. If all are measured, some of them
    /// stand for the others here.
    pub(super) fn feed_sketch(&mut self, stands_for: u64, messages: u64, took: Duration) {
        self.measures.unfed = self.measures.unfed.wrapping_add(1);
        let times = match stands_for {
            1 if !u64::from(self.measures.unfed).is_multiple_of(FED) => return,
            1 => FED,
            many => many,
        };
        self.worker.core.feed_sketch(
            self.worker.source,
            messages * times,
            took.saturating_mul(times as u32),
        );
    }

    /// `done` if the message is not attempted again.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn out_of_hand(&mut self, done: bool) {
        self.in_hand = false;
        if self.measures.measurement.is_some() {
            self.measured(done);
        }
        self.slot_state.set_free();
    }

    /// As `settle`, without a call if it was a send that went well and whose handler has consumed
    /// it. Then true: the slot stays busy, for the next message of the run or until the caller says
    /// otherwise. A caller that waits for a reply finds it free.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn settle_in_run(&mut self, result: Result<Answer<A::Reply>, A::Error>) -> bool {
        let delivery = &self.delivery;
        let left = delivery.message.is_some() | delivery.extra.is_some() | self.spare.is_some();
        match result {
            Ok(answer) if !left & delivery.marks.is_empty() => {
                count(&self.slot_state.counters.handled);
                self.in_hand = false;
                if self.measures.measurement.is_some() {
                    self.measured(true);
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

    /// Nothing is left of the message, and there are no marks.
    #[inline]
    fn replied(&mut self, reply: A::Reply) {
        count(&self.slot_state.counters.handled);
        self.out_of_hand(true);
        let Some(mut extra) = self.delivery.extra.take() else { return discard(reply) };
        let port = extra.port.take();
        // What the sender has said is gone before it hears the reply.
        drop(extra);
        match port {
            Some(port) => discard(port.reply(reply)),
            None => discard(reply),
        }
    }

    /// Settles an attempt that returned.
    pub(crate) fn settle(&mut self, mut result: Result<Answer<A::Reply>, A::Error>) {
        if let Ok(Answer::Reply(reply)) = result {
            let left = self.delivery.message.is_some() | self.spare.is_some();
            match self.delivery.marks {
                Marks::BY_HANDOFF => return self.answered(reply),
                Marks::NONE if !left => return self.replied(reply),
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
            Ok(answer) => self.handled(answer),
            Err(error) if marks.has(Marks::FORWARDED) => {
                discard(error);
                self.handled(Answer::Deferred);
            }
            Err(error) => {
                self.outcome = Outcome::Rejected;
                let failures = self.delivery.failures() + 1;
                let crashed = self.delivery.marks.remove(Marks::CRASHED);
                if crashed && self.kills() >= self.worker.core.frame.config.failure.poison_limit {
                    return self.poisoned(Some(error), None);
                }
                let cause = if crashed { Cause::Crash(&error) } else { Cause::Error(&error) };
                let attempt = FailedAttempt { cause, failures };
                let verdict = self.ask_policy(attempt);
                let reason = DeadLetterReason::Failed;
                let error = Some(error);
                self.follow(verdict, Failure { reason, error, panic: None, killed: crashed });
            }
        }
    }

    /// Acts on the verdict about a failed attempt.
    fn follow(&mut self, verdict: FailureAction, failure: Failure<A::Error>) {
        let waits = matches!(verdict, FailureAction::Retry { .. } | FailureAction::ParkKey);
        if waits && self.is_unwanted() {
            self.withdraw();
            return discard(failure.error);
        }
        match verdict {
            FailureAction::Retry { after, counted } => self.retry(after, counted, failure),
            FailureAction::DeadLetter => self.end_as_dead_letter(failure),
            FailureAction::Drop => {
                self.drop_message();
                discard(failure.error);
            }
            FailureAction::Return => match failure.error {
                Some(error) if self.delivery.is_call() => self.give_back(error),
                error => self.end_as_dead_letter(Failure { error, ..failure }),
            },
            FailureAction::ParkKey => self.park_key(failure),
            FailureAction::StopPool => {
                // Nothing is started from here on, of this key least of all.
                stop_because(&self.worker.core.erased(), failure.exit_reason());
                end(&*self.worker.core);
                self.end_as_dead_letter(failure);
            }
        }
    }

    /// The message has killed as many as it may.
    fn poisoned(&mut self, error: Option<A::Error>, panic: Option<String>) {
        let finally = self
            .worker
            .core
            .frame
            .config
            .failure
            .finally
            .map_or(FailureAction::DeadLetter, FailureAction::from);
        let reason = DeadLetterReason::Poisoned;
        match finally {
            FailureAction::Return => self.dead_letter(reason, error, panic),
            verdict => self.follow(verdict, Failure { reason, error, panic, killed: true }),
        }
    }

    fn end_as_dead_letter(&mut self, failure: Failure<A::Error>) {
        self.dead_letter(failure.reason, failure.error, failure.panic);
    }

    /// The handler has replied to a caller that waits at the handoff slot.
    fn answered(&mut self, reply: A::Reply) {
        count(&self.slot_state.counters.handled);
        self.delivery.marks = Marks::NONE;
        self.out_of_hand(true);
        if let Some(handoff_slot) = &self.delivery.handoff_slot
            && let Err(unwanted) = handoff_slot.answer(reply)
        {
            discard(unwanted);
        }
        // Nothing else comes with it: metadata opens a port.
        if self.delivery.message.is_some() | self.spare.is_some() {
            discard(self.take_message());
        }
    }

    fn handled(&mut self, answer: Answer<A::Reply>) {
        count(&self.slot_state.counters.handled);
        self.delivery.marks.remove(Marks::CRASHED);
        if self.delivery.marks.remove(Marks::FORWARDED) {
            count(&self.slot_state.counters.forwarded);
        }
        let (message, extra) = self.finish();
        match (answer, extra.and_then(|extra| extra.port)) {
            (Answer::Reply(reply), Some(port)) => discard(port.reply(reply)),
            (answer, port) => discard((answer, port)),
        }
        discard(message);
    }

    fn give_back(&mut self, error: A::Error) {
        count(&self.slot_state.counters.failed);
        let (message, extra) = self.finish();
        if let Some(port) = extra.and_then(|extra| extra.port) {
            port.fail(error);
        }
        discard(message);
    }

    fn drop_message(&mut self) {
        count(&self.slot_state.counters.dropped);
        discard(self.finish());
    }

    /// Ends the time in hand. The message is the one left in place, or the spare copy.
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
        let kills = self.kills();
        let age = Some(self.delivery.queued_for());
        let (message, extra) = self.finish();
        let port = extra.and_then(|extra| extra.port);
        let mut letter = DeadLetter { message, reason, error, panic, attempts, age };
        if let Some(port) = port {
            // Pairs with the store of `end`, which comes before a stop aborts this
            // worker: otherwise the caller would hear that the worker was killed, not
            // that the pool stopped.
            let has_ended = self.worker.core.frame.lifecycle.ended.load(Ordering::SeqCst);
            port.resolve(call_error(&mut letter, kills, has_ended));
        }
        self.worker.core.report_dead_letter(letter);
    }

    /// If the message is gone, it is a dead letter.
    fn retry(&mut self, after: Duration, counted: bool, failure: Failure<A::Error>) {
        let Some(message) = self.take_message() else { return self.end_as_dead_letter(failure) };
        // After a stale `false` the message waits for another attempt, and `give_back_queued` finds
        // it there, at the latest when the last task ends.
        if self.worker.core.frame.lifecycle.ended.load(Ordering::Relaxed) {
            discard(failure.error);
            self.delivery.message = Some(message);
            return self.return_message();
        }
        let extra = self.failed_extra(counted, failure);
        self.out_of_hand(false);
        count(&self.slot_state.counters.retries);
        let urgent = self.delivery.class.is_urgent();
        let due = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let stamp =
            Stamp::coarse(self.worker.core.frame.telemetry.coarse.timely().saturating_add(due));
        let entry = Entry { message, extra: Some(extra), key: None, hash: 0, urgent, stamp };
        self.go_back(entry, after);
    }

    /// The message in hand has not been begun, and nothing has failed: it is at the head of its
    /// key's line again.
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
        self.go_back(entry, Duration::ZERO);
    }

    /// The message stands at the head of its key's line until it is due.
    fn go_back(&mut self, entry: Queued<A, K>, after: Duration) {
        start_clock(&self.worker.core.erased());
        if let Some(deferred) = &mut self.rare.deferred {
            return deferred.push(Deferred { entry: Some(entry), fate: Fate::Retry(after) });
        }
        let source = std::mem::replace(&mut self.worker.source, Source::None);
        self.worker.source = self.worker.core.park(self.worker.slot, source, entry, after);
    }

    /// After a batch has failed and it is unknown which message is at fault.
    pub(super) fn attempt_alone(&mut self, reason: DeadLetterReason, panic: Option<String>) {
        self.outcome = match reason {
            DeadLetterReason::TimedOut => Outcome::TimedOut,
            _ => Outcome::Rejected,
        };
        let failure = Failure { reason, error: None, panic, killed: false };
        self.alone = true;
        self.retry(Duration::ZERO, false, failure);
        self.alone = false;
    }

    /// What a message carries that has failed and waits.
    fn failed_extra(&mut self, counted: bool, failure: Failure<A::Error>) -> Box<ExtraOf<A>> {
        let accepted = self.delivery.queued_at();
        let mut extra = self.delivery.extra.take().unwrap_or_else(ExtraOf::<A>::without_port);
        extra.accepted = Some(accepted);
        extra.attempts += 1;
        extra.next.parked = true;
        extra.failures += u32::from(counted);
        extra.kills += u32::from(failure.killed);
        extra.failed = Some(failure.kept(self.worker.slot));
        extra.next.alone |= self.alone;
        extra
    }

    /// The message waits for an operator at the head of its key's line. If the message is gone,
    /// it is a dead letter, and the key still waits. Without a key, or if the pool has ended,
    /// it is a dead letter.
    #[cold]
    fn park_key(&mut self, failure: Failure<A::Error>) {
        let has_key = self.worker.source.has_key();
        // After a stale `false` the message waits behind its parked key, and `give_back_queued`
        // finds it there, at the latest when the last task ends.
        if !has_key || self.worker.core.frame.lifecycle.ended.load(Ordering::Relaxed) {
            return self.end_as_dead_letter(failure);
        }
        let mut message = self.take_message();
        let (error, panic) = (failure.error.as_ref(), failure.panic.as_deref());
        self.worker.core.notify_parked(message.as_mut(), error, panic);
        let Some(message) = message else {
            let kept = Failed::new(failure.reason, None, failure.panic.clone(), self.worker.slot);
            // First, because settling gives up the key.
            self.park_with(None, kept);
            return self.end_as_dead_letter(failure);
        };
        let mut extra = self.failed_extra(true, failure);
        extra.next.for_good = true;
        let (port, failed) = (extra.port.take(), extra.failed.clone());
        let (urgent, stamp) = (self.delivery.class.is_urgent(), self.delivery.came_at());
        let entry = Entry { message, extra: Some(extra), key: None, hash: 0, urgent, stamp };
        self.out_of_hand(false);
        match failed {
            Some(failed) => self.park_with(Some(entry), failed),
            None => debug_assert!(false, "what has failed says of what"),
        }
        if let Some(port) = port {
            port.resolve(CallError::Parked);
        }
    }

    /// The key in hand is parked, and so is the message, if there is one.
    fn park_with(&mut self, entry: Option<Queued<A, K>>, failed: Arc<Failed<A::Error>>) {
        if let Some(deferred) = &mut self.rare.deferred {
            return deferred.push(Deferred { entry, fate: Fate::Park(failed) });
        }
        let mut entries = Entries::<A, K>::new();
        if let Some(entry) = entry {
            entries.push_back(entry);
        }
        let source = std::mem::replace(&mut self.worker.source, Source::None);
        self.worker.source = self.worker.core.park_key(self.worker.slot, source, entries, failed);
    }

    pub(super) fn settle_panic(&mut self, panic: String) {
        self.delivery.open_port();
        self.delivery.marks.remove(Marks::CRASHED);
        if self.delivery.marks.has(Marks::FORWARDED) {
            return self.handled(Answer::Deferred);
        }
        let kills = self.kills();
        let failures = self.delivery.failures() + 1;
        let attempt = FailedAttempt { cause: Cause::Panic(&panic), failures };
        if kills >= self.worker.core.frame.config.failure.poison_limit {
            return self.poisoned(None, Some(panic));
        }
        let verdict = self.decide(attempt);
        let reason = DeadLetterReason::Panicked;
        self.follow(verdict, Failure { reason, error: None, panic: Some(panic), killed: true });
    }

    /// The action of the policy; if the policy panics, the action for no further attempt.
    fn decide(&self, attempt: FailedAttempt<'_, A::Error>) -> FailureAction {
        let finally = self.worker.core.frame.config.failure.finally;
        let mut decided = finally.map_or(FailureAction::DeadLetter, FailureAction::from);
        let mut attempt = Some(attempt);
        let mut ask = || {
            if let Some(attempt) = attempt.take() {
                decided = self.ask_policy(attempt);
            }
        };
        discard(panic_of(&mut ask));
        decided
    }

    /// The action of the policy. A panic of it is one of the handler.
    fn ask_policy(&self, attempt: FailedAttempt<'_, A::Error>) -> FailureAction {
        user_code_follows();
        let core = &self.worker.core;
        core.settings.functions.policy.decide(attempt, core.frame.env.chance())
    }

    /// The worker was killed with the message in hand. The message is not at fault: it does not
    /// count as one that kills.
    pub(super) fn settle_kill(&mut self) {
        self.delivery.open_port();
        self.delivery.marks.remove(Marks::CRASHED);
        if self.delivery.marks.has(Marks::FORWARDED) {
            return self.handled(Answer::Deferred);
        }
        // An adopted worker has its message on the way to its other end, if it has not arrived.
        if self.begins_later || self.slot_state.details.lock().adopted.is_some() {
            return self.begin_later();
        }
        let failures = self.delivery.failures() + 1;
        let verdict = self.decide(FailedAttempt { cause: Cause::Kill, failures });
        let reason = DeadLetterReason::Killed;
        self.follow(verdict, Failure { reason, error: None, panic: None, killed: false });
    }

    /// Workers that died with this message in hand, with this one.
    fn kills(&self) -> u32 {
        self.delivery.extra.as_ref().map_or(1, |extra| extra.kills + 1)
    }

    /// The handler did not return within the pool's limit, and was dropped.
    pub(crate) fn timed_out(&mut self, limit: Duration) {
        self.delivery.open_port();
        self.delivery.marks.remove(Marks::CRASHED);
        self.outcome = Outcome::TimedOut;
        if self.delivery.marks.has(Marks::FORWARDED) {
            return self.handled(Answer::Deferred);
        }
        let failures = self.delivery.failures() + 1;
        let attempt = FailedAttempt { cause: Cause::Timeout(limit), failures };
        let verdict = self.ask_policy(attempt);
        let reason = DeadLetterReason::TimedOut;
        self.follow(verdict, Failure { reason, error: None, panic: None, killed: false });
    }

    /// The worker is dropped with a message in hand, at the deadline of a stop or with its runtime;
    /// or the message would be attempted again, and the pool has ended.
    pub(super) fn return_message(&mut self) {
        self.delivery.open_port();
        if self.delivery.marks.has(Marks::FORWARDED) {
            return self.handled(Answer::Deferred);
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

/// How an attempt has failed.
struct Failure<E> {
    reason: DeadLetterReason,
    /// Of the handler.
    error: Option<E>,
    /// The message of its panic.
    panic: Option<String>,
    /// Its worker, or the process behind the handler, has died of it.
    killed: bool,
}

impl<E> Failure<E> {
    fn kept(self, worker: usize) -> Arc<Failed<E>> {
        Failed::new(self.reason, self.error, self.panic, worker)
    }

    /// Of the pool that stops because of it.
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

/// `has_ended` if the pool has.
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
