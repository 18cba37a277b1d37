//! What becomes of the message in hand: one outcome, whatever happens.

use std::{hash::Hash, sync::atomic::Ordering, time::Duration};

use super::{Hold, Source};
use crate::{
    Actor, Answer, CallError, Cause, DeadLetter, DeadLetterReason, FailedAttempt, Verdict,
    pool::{
        clock, core::ExtraOf, discard::discard, entry::Entry, limits::Outcome, stamp::Stamp,
        tally::count,
    },
};

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Hold<A, K> {
    #[cold]
    fn measured(&mut self) {
        if let Some(measurement) = self.measurement.take() {
            let took = measurement.end(self.core.coarse.real(), &self.core.measured);
            if self.core.settings.quick.is_some() {
                return;
            }
            self.core.coarse.tell_pace(took);
            if self.core.keyed() {
                self.core.wake.set_quick(self.core.coarse.measures_few());
            }
        }
    }

    #[inline(always)]
    fn out_of_hand(&mut self) {
        self.in_hand = false;
        if self.measurement.is_some() {
            self.measured();
        }
        self.seat.is_free();
    }

    /// As `settle`, without a call where it was a send that went well and whose handler has consumed it.
    #[inline(always)]
    pub(crate) fn settle_in_run(&mut self, result: Result<Answer<A::Reply>, A::Error>) {
        let delivery = &self.delivery;
        let told = delivery.put_back | delivery.forwarded | delivery.crashed;
        let nothing_left =
            delivery.message.is_none() && delivery.extra.is_none() && self.spare.is_none();
        match result {
            Ok(answer) if nothing_left && !told => {
                count(&self.seat.tally.handled);
                self.out_of_hand();
                discard(answer);
            }
            result => self.settle(result),
        }
    }

    /// Settles an attempt that returned.
    pub(crate) fn settle(&mut self, result: Result<Answer<A::Reply>, A::Error>) {
        match result {
            Ok(_) if self.delivery.put_back => self.put_back(),
            Ok(answer) => self.handled(answer),
            Err(error) if self.delivery.forwarded => {
                discard(error);
                self.handled(Answer::Elsewhere);
            }
            Err(error) => {
                self.outcome = Outcome::Rejected;
                let failures = self.delivery.failures() + 1;
                let crashed = std::mem::take(&mut self.delivery.crashed);
                if crashed && self.kills() >= self.core.settings.poison_limit {
                    return self.dead_letter(DeadLetterReason::Poisoned, Some(error), None);
                }
                let cause = if crashed { Cause::Crash(&error) } else { Cause::Error(&error) };
                let attempt = FailedAttempt { cause, failures };
                match self.core.settings.policy.decide(attempt, self.core.chance()) {
                    Verdict::Retry { after, counted } => {
                        let otherwise = DeadLetterReason::Failed;
                        self.retry(after, counted, crashed, Some(error), None, otherwise);
                    }
                    Verdict::DeadLetter => {
                        self.dead_letter(DeadLetterReason::Failed, Some(error), None)
                    }
                    Verdict::Drop => self.drop_message(),
                    Verdict::Return if self.delivery.is_call() => self.give_back(error),
                    Verdict::Return => {
                        self.dead_letter(DeadLetterReason::Failed, Some(error), None)
                    }
                }
            }
        }
    }

    fn handled(&mut self, answer: Answer<A::Reply>) {
        count(&self.seat.tally.handled);
        self.delivery.crashed = false;
        if std::mem::take(&mut self.delivery.forwarded) {
            count(&self.seat.tally.forwarded);
        }
        let (message, extra) = self.finish();
        match (answer, extra.and_then(|extra| extra.port)) {
            (Answer::Reply(reply), Some(port)) => discard(port.reply(reply)),
            (answer, port) => discard((answer, port)),
        }
        discard(message);
    }

    /// The message was not this worker's to handle: it is queued again, for another.
    #[cold]
    fn put_back(&mut self) {
        self.delivery.put_back = false;
        let class = self.delivery.class;
        let stamp = Stamp::coarse(self.delivery.stamp.nanos());
        let Some(message) = self.take_message() else {
            return self.dead_letter(DeadLetterReason::Failed, None, None);
        };
        let extra = self.delivery.extra.take();
        self.out_of_hand();
        self.core.permits.take_back();
        self.core.re_home(vec![Entry { message, extra, key: None, hash: 0, class, stamp }]);
    }

    fn give_back(&mut self, error: A::Error) {
        count(&self.seat.tally.failed);
        let (message, extra) = self.finish();
        if let Some(port) = extra.and_then(|extra| extra.port) {
            port.fail(error);
        }
        discard(message);
    }

    fn drop_message(&mut self) {
        count(&self.seat.tally.dropped);
        discard(self.finish());
    }

    /// Ends the time in hand. The message is the one left in place, or the spare copy.
    fn finish(&mut self) -> (Option<A::Message>, Option<Box<ExtraOf<A>>>) {
        let message = self.take_message();
        self.out_of_hand();
        (message, self.delivery.extra.take())
    }

    fn take_message(&mut self) -> Option<A::Message> {
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
        self.seat.tally.dead_letters.count(reason);
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
            port.resolve(call_error(&mut letter, kills));
        }
        self.core.report_dead_letter(letter);
    }

    /// Where the message is gone, it is a dead letter for the reason `otherwise`.
    fn retry(
        &mut self,
        after: Duration,
        counted: bool,
        killed: bool,
        error: Option<A::Error>,
        panic: Option<String>,
        otherwise: DeadLetterReason,
    ) {
        let Some(message) = self.take_message() else {
            return self.dead_letter(otherwise, error, panic);
        };
        discard(error);
        if self.core.ended.load(Ordering::SeqCst) {
            self.delivery.message = Some(message);
            return self.killed();
        }
        let accepted = self.delivery.queued_at();
        let mut extra = self.delivery.extra.take().unwrap_or_else(|| ExtraOf::<A>::new(None));
        extra.accepted = Some(accepted);
        extra.attempts += 1;
        extra.parked = true;
        extra.failures += u32::from(counted);
        extra.kills += u32::from(killed);
        self.out_of_hand();
        count(&self.seat.tally.retries);
        let class = self.delivery.class;
        let due = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        let stamp = Stamp::coarse(self.core.coarse.shown().saturating_add(due));
        let entry = Entry { message, extra: Some(extra), key: None, hash: 0, class, stamp };
        let source = std::mem::replace(&mut self.source, Source::None);
        clock::start(&self.core);
        self.source = self.core.park(self.worker, source, entry, after);
    }

    pub(super) fn settle_panic(&mut self, panic: String) {
        self.delivery.crashed = false;
        if self.delivery.forwarded {
            return self.handled(Answer::Elsewhere);
        }
        let kills = self.kills();
        let failures = self.delivery.failures() + 1;
        let attempt = FailedAttempt { cause: Cause::Panic(&panic), failures };
        let core = self.core.clone();
        let decide = || core.settings.policy.decide(attempt, core.chance());
        if kills >= self.core.settings.poison_limit {
            return self.dead_letter(DeadLetterReason::Poisoned, None, Some(panic));
        }
        let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(decide));
        match verdict.unwrap_or_else(|policy| {
            discard(policy);
            Verdict::DeadLetter
        }) {
            Verdict::Retry { after, counted } => {
                let otherwise = DeadLetterReason::Panicked;
                self.retry(after, counted, true, None, Some(panic), otherwise);
            }
            Verdict::Drop => self.drop_message(),
            Verdict::DeadLetter | Verdict::Return => {
                self.dead_letter(DeadLetterReason::Panicked, None, Some(panic));
            }
        }
    }

    /// Workers that died with this message in hand, with this one.
    fn kills(&self) -> u32 {
        self.delivery.extra.as_ref().map_or(1, |extra| extra.kills + 1)
    }

    /// The handler did not return within the pool's limit, and was dropped.
    pub(crate) fn timed_out(&mut self, limit: Duration) {
        self.delivery.crashed = false;
        self.outcome = Outcome::TimedOut;
        if self.delivery.forwarded {
            return self.handled(Answer::Elsewhere);
        }
        let failures = self.delivery.failures() + 1;
        let attempt = FailedAttempt { cause: Cause::Timeout(limit), failures };
        match self.core.settings.policy.decide(attempt, self.core.chance()) {
            Verdict::Retry { after, counted } => {
                self.retry(after, counted, false, None, None, DeadLetterReason::TimedOut);
            }
            Verdict::Drop => self.drop_message(),
            Verdict::DeadLetter | Verdict::Return => {
                self.dead_letter(DeadLetterReason::TimedOut, None, None);
            }
        }
    }

    /// The worker is dropped with a message in hand, at the deadline of a stop or with its runtime; or the message
    /// would be attempted again, and the pool has ended.
    pub(super) fn killed(&mut self) {
        if self.delivery.forwarded {
            return self.handled(Answer::Elsewhere);
        }
        if self.delivery.message.is_none() && self.spare.is_none() {
            return self.dead_letter(DeadLetterReason::Killed, None, None);
        }
        count(&self.seat.tally.returned);
        let (message, extra) = self.finish();
        if let Some(port) = extra.and_then(|extra| extra.port) {
            port.resolve(CallError::Stopped);
        }
        self.core.left_over.lock().extend(message);
    }
}

fn call_error<M, E>(letter: &mut DeadLetter<M, E>, kills: u32) -> CallError<E> {
    match letter.reason {
        DeadLetterReason::Poisoned => CallError::Poisoned { kills },
        DeadLetterReason::Panicked => CallError::Panicked(letter.panic.clone().unwrap_or_default()),
        DeadLetterReason::Failed => match letter.error.take() {
            Some(error) => CallError::Failed(error),
            None => CallError::Dropped,
        },
        DeadLetterReason::NoWorkers => CallError::NoWorkers,
        DeadLetterReason::Killed => CallError::Stopped,
        DeadLetterReason::Abandoned => CallError::Dropped,
        DeadLetterReason::Evicted => CallError::Evicted,
        DeadLetterReason::Expired => CallError::Expired,
        DeadLetterReason::TimedOut => CallError::TimedOut,
    }
}
