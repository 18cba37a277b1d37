//! What a worker holds while it works. It lies outside the future that may panic or be dropped, and has one way out.

use std::{
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use super::{
    clock,
    core::{Core, ExtraOf, Queued, take::BUDGET},
    discard::discard,
    entry::Entry,
    lanes::LaneId,
    limits::Outcome,
    mailbox::Mailbox,
    seat::Seat,
    stamp::Stamp,
    stats::Measurement,
    tally::count,
};
use crate::{
    Actor, Answer, CallError, Cause, Class, DeadLetter, DeadLetterReason, Delivery, FailedAttempt,
    Verdict, class::URGENT_RUN,
};

/// One run in so many is timed, with two looks at the clock.
const RUNS_PER_TIMING: u32 = 8;

/// Runs from one shard before a worker looks at the others, where handlers are quick.
const RUNS_IN_A_SHARD: u32 = 16;

/// As `RUNS_IN_A_SHARD`, where they are not: its caches matter less, and others would wait for long.
const LONG_RUNS_IN_A_SHARD: u32 = 2;

/// Messages from its own mailbox that a worker takes in a row while others may wait for it.
const MAIL_RUN: u32 = 64;

/// Where the message in hand came from, and what the worker owns because of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// Nowhere any more: the message stands alone.
    None,
    /// The queue of a shard without order; `alone` where the worker is marked as attending it.
    Shared { index: usize, alone: bool },
    /// As `Shared`, between two runs: no message is in hand.
    Attending { index: usize, alone: bool },
    /// The head of a keyed shard, with its drain token.
    Head { index: usize, epoch: u64, hash: Option<u32>, run: u32 },
    /// The worker's own mailbox.
    Desk,
    /// A lane that this worker runs; `run` messages of it in a row.
    Lane { index: usize, id: LaneId, run: u32 },
}

/// What a look for work came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A message is in hand.
    InHand,
    /// A message was settled without being handled.
    Skipped,
    /// There is no work, and the worker has no place any more.
    Nothing,
}

/// Whether the worker counts as awake, and how it came to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posture {
    Awake,
    /// Awake, and stepping aside once before it lies down.
    Lingering,
    /// In the idle list, or just taken off it by a waker.
    LyingDown,
    /// In a suspended handler, or between restarts.
    Suspended,
}

pub(crate) type DeliveryOf<A> =
    Delivery<<A as Actor>::Message, <A as Actor>::Reply, <A as Actor>::Error>;

pub(crate) struct Hold<A: Actor, K: Hash + Eq + Send + Sync + 'static> {
    pub(crate) core: Arc<Core<A, K>>,
    pub(crate) worker: usize,
    pub(crate) seat: Arc<Seat>,
    pub(crate) source: Source,
    /// The worker's own mailbox, once there has been something in it.
    mailbox: Option<Arc<Mailbox<A, K>>>,
    /// Urgent messages taken in a row, as long as there are some.
    urgent_run: u32,
    /// Messages from its own mailbox taken in a row.
    mail_run: u32,
    pub(crate) delivery: DeliveryOf<A>,
    /// A copy for another attempt, where one may be asked for.
    pub(crate) spare: Option<A::Message>,
    /// A message has been started whose outcome is not settled.
    pub(crate) in_hand: bool,
    /// Present where the times of the message in hand are measured.
    measurement: Option<Measurement>,
    /// What the last attempt says of the load of what its handler uses. For the pool's limits.
    pub(crate) outcome: Outcome,
    pub(crate) posture: Posture,
    /// Messages taken in this run without keys, after the first.
    run: u32,
    /// When the run began, where it is timed.
    timed_since: Option<Instant>,
    /// Runs begun.
    timed: u32,
    /// It was woken because others do not get on.
    pub(crate) join: bool,
    /// Runs in the shard that it attends, one after the other.
    runs: u32,
    /// Which shard it looks at first.
    pub(crate) cursor: u32,
}

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Hold<A, K> {
    pub(crate) fn new(core: Arc<Core<A, K>>, worker: usize) -> Self {
        let start = core.coarse.start();
        Self {
            seat: core.seats.at(worker).clone(),
            core,
            worker,
            source: Source::None,
            mailbox: None,
            urgent_run: 0,
            mail_run: 0,
            delivery: Delivery {
                message: None,
                extra: None,
                class: Class::Normal,
                stamp: Stamp::default(),
                start,
                forwarded: false,
                crashed: false,
                put_back: false,
            },
            spare: None,
            in_hand: false,
            measurement: None,
            outcome: Outcome::Done,
            posture: Posture::Suspended,
            run: 0,
            timed_since: None,
            timed: 0,
            join: false,
            runs: 0,
            cursor: worker as u32 % 64,
        }
    }

    /// True when the worker is to start no further message.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.core.ended.load(Ordering::Acquire)
            || (self.seat.has_orders() && self.seat.is_dismissed())
    }

    /// Takes the next message from where the last one came from.
    pub(crate) fn take_next(&mut self) -> Taken {
        if self.is_interrupted()
            && let Some(taken) = self.take_first_of_all()
        {
            return taken;
        }
        match self.source {
            Source::Shared { index, alone } => self.take_next_shared(index, alone),
            Source::Attending { .. } => Taken::Nothing,
            source => {
                self.source = Source::None;
                match self.core.next(self.worker, source) {
                    Some((source, entry)) => self.begin(source, entry),
                    None => Taken::Nothing,
                }
            }
        }
    }

    /// True where something may come before the next message of the queue.
    #[inline(always)]
    fn is_interrupted(&self) -> bool {
        self.seat.has_orders() || self.core.wake.is_urged()
    }

    #[inline(always)]
    fn take_next_shared(&mut self, index: usize, alone: bool) -> Taken {
        self.run += 1;
        let attendant = alone.then_some(self.worker);
        if self.core.pop_shared(index, attendant, self.run, &mut self.delivery) {
            return self.start();
        }
        self.end_run(index, alone);
        Taken::Nothing
    }

    /// As `take_next`, in the middle of a run without keys and for as long as nothing else comes first.
    #[inline(always)]
    pub(crate) fn take_in_run(&mut self) -> Option<Taken> {
        if self.core.ended.load(Ordering::Acquire) || self.is_interrupted() {
            return None;
        }
        match self.source {
            Source::Shared { index, alone } => Some(self.take_next_shared(index, alone)),
            Source::Head { index, epoch, run, .. } if run < BUDGET => {
                let hash = self.core.step(index, epoch, &mut self.delivery)?;
                self.source = Source::Head { index, epoch, hash, run: run + 1 };
                Some(self.start())
            }
            _ => None,
        }
    }

    /// What comes before the queue, if anything does.
    #[cold]
    fn take_first_of_all(&mut self) -> Option<Taken> {
        self.count_runs();
        if let Some(taken) = self.take_first() {
            return Some(taken);
        }
        if self.is_normal_due() && matches!(self.source, Source::Head { .. }) {
            // Perhaps there are only urgent ones here.
            self.give_up_place();
            return Some(Taken::Nothing);
        }
        None
    }

    /// The message before was the last of a run where another class, or another queue, had its turn.
    fn count_runs(&mut self) {
        if self.delivery.class == Class::Normal {
            self.urgent_run = 0;
        }
        match self.source {
            Source::Desk => self.source = Source::None,
            _ => self.mail_run = 0,
        }
    }

    /// True after a run of urgent messages.
    fn is_normal_due(&self) -> bool {
        self.urgent_run >= URGENT_RUN
    }

    /// What comes before the queue: urgent messages, and the worker's own mailbox. After a run of urgent messages, and after
    /// one of its own, the others have a turn.
    #[cold]
    fn take_first(&mut self) -> Option<Taken> {
        if !self.is_normal_due()
            && let Some(taken) = self.take_urgent()
        {
            return Some(taken);
        }
        match self.mail_run < MAIL_RUN {
            true => self.take_mail(false),
            false => None,
        }
    }

    fn take_urgent(&mut self) -> Option<Taken> {
        if let Some(taken) = self.take_mail(true) {
            return Some(taken);
        }
        if !self.core.wake.is_urged() {
            return None;
        }
        if !self.core.keyed() {
            let entry = self.core.take_urgent()?;
            return Some(self.begin(self.source, entry));
        }
        let own = match self.source {
            Source::Head { index, .. } => Some(index),
            _ => None,
        };
        let (source, entry) = self.core.take_urged(self.worker, own)?;
        self.give_up_place();
        Some(self.begin(source, entry))
    }

    /// The worker's own mailbox, if there has been anything for it.
    pub(crate) fn own_mailbox(&mut self) -> Option<&Mailbox<A, K>> {
        if self.mailbox.as_ref().is_none_or(|mailbox| mailbox.has_left()) {
            self.mailbox = self.core.mailbox_if_any(self.worker);
        }
        self.mailbox.as_deref()
    }

    fn take_mail(&mut self, urgent_only: bool) -> Option<Taken> {
        if !self.seat.has_orders() {
            return None;
        }
        let entry = self.own_mailbox()?.pop(urgent_only)?;
        self.give_up_place();
        self.mail_run += 1;
        Some(self.begin(Source::Desk, entry))
    }

    /// Takes the next message from any shard; the worker has no place.
    pub(crate) fn take_anywhere(&mut self) -> Taken {
        if (self.seat.has_orders() || self.core.wake.is_urged())
            && let Some(taken) = self.take_first()
        {
            return taken;
        }
        let taken = self.take_from_shards();
        if taken != Taken::Nothing || self.urgent_run.max(self.mail_run) == 0 {
            return taken;
        }
        // Others have had their turn, and there was nothing.
        (self.urgent_run, self.mail_run) = (0, 0);
        self.take_first().unwrap_or(Taken::Nothing)
    }

    fn take_from_shards(&mut self) -> Taken {
        if !self.core.keyed() {
            return self.take_shared();
        }
        let first = if self.is_normal_due() { Class::Normal } else { Class::Urgent };
        match self.core.take(self.worker, &mut self.cursor, first) {
            Some((source, entry)) => self.begin(source, entry),
            None => Taken::Nothing,
        }
    }

    /// A run without keys is at its end. Now and then its handlers were timed.
    #[cold]
    fn end_run(&mut self, index: usize, alone: bool) {
        self.source = Source::Attending { index, alone };
        if let Some(since) = self.timed_since.take() {
            self.core.tell_pace(since.elapsed() / self.run);
        }
    }

    /// The first message of a run is in the delivery.
    fn begin_run(&mut self, index: usize, alone: bool) -> Taken {
        self.timed_since = self.timed.is_multiple_of(RUNS_PER_TIMING).then(Instant::now);
        self.timed = self.timed.wrapping_add(1);
        self.source = Source::Shared { index, alone };
        self.run = 0;
        self.start()
    }

    /// Begins another run in the shard that the worker attends, whose senders are likely to share its caches; now and
    /// then, and when there is nothing, goes to the next one.
    fn take_shared(&mut self) -> Taken {
        if let Source::Attending { index, alone } = self.source {
            self.runs += 1;
            let quick = self.core.wake.is_quick();
            let most = if quick { RUNS_IN_A_SHARD } else { LONG_RUNS_IN_A_SHARD };
            if !self.core.wake.is_ready_at(index) {
                // There is nothing.
            } else if quick && self.core.shards[index].is_served_near(self.worker) {
                // The other one has the shard now, and its bit.
                self.source = Source::None;
            } else if self.runs < most {
                let attendant = alone.then_some(self.worker);
                if self.core.pop_shared(index, attendant, 0, &mut self.delivery) {
                    return self.begin_run(index, alone);
                }
            }
            self.cursor = (index as u32 + 1) % 64;
            self.give_up_place();
        }
        self.runs = 0;
        let join = std::mem::take(&mut self.join);
        match self.core.take_shared(self.worker, self.cursor, join, &mut self.delivery) {
            Some((index, alone)) => self.begin_run(index, alone),
            None => Taken::Nothing,
        }
    }

    fn begin(&mut self, source: Source, entry: Queued<A, K>) -> Taken {
        self.source = source;
        self.delivery.message = Some(entry.message);
        self.delivery.extra = entry.extra;
        self.delivery.class = entry.class;
        self.delivery.stamp = entry.stamp;
        self.urgent_run = match entry.class {
            Class::Urgent => self.urgent_run.saturating_add(1),
            Class::Normal => 0,
        };
        let taken = self.start();
        discard(entry.key);
        taken
    }

    /// The message in the delivery is in hand from here on, unless its caller has gone.
    #[inline(always)]
    fn start(&mut self) -> Taken {
        count(&self.seat.tally.started);
        self.in_hand = true;
        self.seat.is_busy_since(self.core.coarse.shown());
        if self.delivery.extra.is_some() && self.is_settled_already() {
            return Taken::Skipped;
        }
        if self.delivery.stamp.is_sampled() {
            self.measure();
        }
        if let Some(copy) = self.core.settings.copy {
            self.spare = self.delivery.message.as_ref().map(copy);
        }
        Taken::InHand
    }

    #[cold]
    fn measure(&mut self) {
        let now = self.core.coarse.real();
        self.measurement = Some(Measurement::begin(self.delivery.stamp, now));
    }

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

    /// Counts a retry as no longer waiting, and settles a call whose caller has gone.
    fn is_settled_already(&mut self) -> bool {
        let Some(extra) = &mut self.delivery.extra else { return false };
        if std::mem::take(&mut extra.parked) {
            self.core.tally.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        let abandoned = extra.port.as_ref().is_some_and(|port| port.is_abandoned());
        if abandoned {
            self.dead_letter(DeadLetterReason::Abandoned, None, None);
        } else if extra.has_expired() {
            self.dead_letter(DeadLetterReason::Expired, None, None);
        } else {
            return false;
        }
        true
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

    fn dead_letter(
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

    /// Settles the message that was in hand when the handler panicked, and gives up the place it came from.
    pub(crate) fn panicked(&mut self, panic: String) {
        if self.in_hand {
            self.settle_panic(panic);
        }
        self.give_up_place();
    }

    pub(crate) fn give_up_place(&mut self) {
        let source = std::mem::replace(&mut self.source, Source::None);
        self.core.release(self.worker, source);
    }

    fn settle_panic(&mut self, panic: String) {
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
    fn killed(&mut self) {
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

    /// Settles what is in hand without asking anybody, and gives up the place.
    fn let_go(&mut self) {
        if self.in_hand {
            self.killed();
        }
        self.give_up_place();
    }

    pub(crate) fn wake_up(&mut self) {
        self.core.note_time();
        self.core.wake.enter(&self.core.clock.bell);
        self.posture = Posture::Awake;
    }

    /// The caller has no message in hand and is not polled for a while.
    pub(crate) fn rest(&mut self) {
        // A handler may panic when it is dropped, while it is suspended.
        if std::mem::replace(&mut self.posture, Posture::Suspended) != Posture::Suspended {
            self.core.wake.leave(&self.core.clock.bell);
        }
        self.core.serve_waiters();
        self.core.tell_progress();
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

impl<A: Actor, K: Hash + Eq + Send + Sync + 'static> Drop for Hold<A, K> {
    fn drop(&mut self) {
        self.let_go();
        match self.posture {
            Posture::Awake => self.core.wake.leave(&self.core.clock.bell),
            Posture::Lingering => {
                self.core.wake.look_again();
                self.core.wake.leave(&self.core.clock.bell);
            }
            Posture::LyingDown => self.core.wake.forget(self.worker, &self.core.clock.bell),
            Posture::Suspended if self.core.wake.any_ready() => {
                self.core.wake.one(&self.core.clock.bell);
            }
            Posture::Suspended => {}
        }
    }
}
