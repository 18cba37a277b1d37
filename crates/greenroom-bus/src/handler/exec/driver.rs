//! The task that drives one process: hands it events, passes its answers on, and replaces it when
//! it is gone.

use std::{io, pin::pin, sync::Arc, sync::atomic::Ordering::Relaxed};

use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, sleep},
};

use super::{
    blame::Follows,
    counters::Counters,
    errors::{self, effect, is_for_want_of_something},
    in_hand::InHand,
    message::{DriverMessage, Stop, WorkerJob},
    options::ExecConfig,
    process::{Broken, End, Happened, How, Process},
    reply::Reply,
    restarts::Restarts,
};
use crate::{
    excerpt::excerpt,
    handler::{Attempt, Failure, FailureKind},
};

/// How the next start of a process is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStart {
    /// The first, or one after a recycle: not counted.
    Free,
    /// It replaces a process that was ended at its timeout, that had a cancelled attempt, or that
    /// could not begin: counted as a restart.
    Counted,
    /// It replaces a process that crashed: counted, and taken from the budget.
    AfterCrash,
}

/// Why a process is attended no more.
enum Ends {
    /// It is gone, or closed a pipe, or does not keep to the protocol.
    Broken(Broken),
    /// The oldest event is in hand for too long.
    Late,
    /// An attempt was cancelled whose event it has in hand.
    Cancelled,
    /// No worker needs it any more.
    Left,
}

/// One process after the other, and its events in hand.
#[derive(Debug)]
pub(super) struct Driver {
    config: Arc<ExecConfig>,
    counters: Arc<Counters>,
    messages: UnboundedReceiver<DriverMessage>,
    in_hand: InHand,
    /// Present once it is to end.
    stop: Option<Stop>,
    restarts: Restarts,
    next: NextStart,
    /// No process could be started for want of something, and the log has said so.
    is_short: bool,
    /// The text about the last process that crashed.
    last_crash: String,
    /// The last attempt that was handed in, whose pool and worker the log names.
    last: Option<Attempt>,
}

impl Driver {
    pub(super) fn new(
        config: Arc<ExecConfig>,
        counters: Arc<Counters>,
        messages: UnboundedReceiver<DriverMessage>,
    ) -> Self {
        Self {
            in_hand: InHand::new(config.in_flight),
            restarts: Restarts::new(config.restart),
            config,
            counters,
            messages,
            stop: None,
            next: NextStart::Free,
            is_short: false,
            last_crash: String::new(),
            last: None,
        }
    }

    /// Drives processes until all workers have left. When dropped, it kills the running one.
    pub(super) async fn run(mut self) {
        while let Some(mut process) = self.begin().await {
            match self.attend(&mut process).await {
                Ends::Broken(broken) if self.in_hand.is_idle() => {
                    self.lie_idle(process, broken).await
                }
                Ends::Broken(broken) => self.bury(process, broken).await,
                Ends::Late => self.give_up(process).await,
                Ends::Cancelled => self.kill(process),
                Ends::Left => return self.leave(process).await,
            }
        }
    }

    /// A process for the first event that waits; none once all have left.
    async fn begin(&mut self) -> Option<Process> {
        loop {
            while self.in_hand.first_waiting().is_none() {
                if self.stop.is_some() {
                    return None;
                }
                let message = self.messages.recv().await?;
                self.take(message);
            }
            match self.start().await {
                Ok(Some(process)) => return Some(process),
                Ok(None) => {}
                Err(failure) => {
                    if let Some(entry) = self.in_hand.pop_waiting() {
                        entry.answer(Err(failure));
                    }
                }
            }
        }
    }

    /// Starts a process, after the wait that is due. `None` if its event was cancelled in between.
    async fn start(&mut self) -> Result<Option<Process>, Failure> {
        if self.next == NextStart::AfterCrash {
            let delay = self
                .restarts
                .take(Instant::now(), &mut rand::rng())
                .map_err(|wait| errors::exhausted(&self.config, &self.last_crash, wait))?;
            // The restart is taken: one whose event is cancelled while it waits is not paid twice.
            self.next = NextStart::Counted;
            if let Some(WorkerJob { answer, .. }) = self.in_hand.first_waiting()
                && !delay.is_zero()
            {
                tokio::select! {
                    () = sleep(delay) => {}
                    () = answer.closed() => {}
                }
            }
        }
        let Some(attempt) = self.in_hand.first_waiting().map(|job| job.attempt.clone()) else {
            return Ok(None);
        };
        let process = Process::start(&self.config, &self.counters, &attempt)
            .map_err(|error| self.cannot_start(&error, &attempt))?;
        self.is_short = false;
        if self.next == NextStart::Counted {
            self.counters.restarts.fetch_add(1, Relaxed);
        }
        Ok(Some(process))
    }

    fn cannot_start(&mut self, error: &io::Error, attempt: &Attempt) -> Failure {
        if !is_for_want_of_something(error) {
            return errors::cannot_start(&self.config, error);
        }
        let failure = errors::is_short(&self.config, error, self.counters.running.load(Relaxed));
        // An event that is given back is reported nowhere else.
        if failure.kind == FailureKind::Released && !std::mem::replace(&mut self.is_short, true) {
            let (pool, worker) = (attempt.pool, attempt.worker);
            tracing::warn!(pool = %pool, worker, "{failure}; meanwhile this worker gives its events back");
        }
        failure
    }

    fn take(&mut self, message: DriverMessage) {
        match message {
            DriverMessage::Job(job) => {
                self.last = Some(job.attempt.clone());
                self.in_hand.add(job);
            }
            DriverMessage::Cancelled => {}
            DriverMessage::Stop(stop) => self.stop = Some(stop),
        }
    }

    /// Takes all messages that have arrived, without waiting.
    fn take_all(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.take(message);
        }
    }

    /// Hands the process events and passes its answers on, until that ends.
    async fn attend(&mut self, process: &mut Process) -> Ends {
        let mut deadline = pin!(sleep(self.config.timeout));
        loop {
            if self.in_hand.has_cancelled() {
                return Ends::Cancelled;
            }
            if self.stop.is_some() {
                return Ends::Left;
            }
            self.in_hand.send(process);
            tokio::select! {
                biased;
                () = &mut deadline, if !self.in_hand.is_idle() => {
                    let end = self.in_hand.since() + self.config.timeout;
                    if end <= Instant::now() {
                        return Ends::Late;
                    }
                    deadline.as_mut().reset(end);
                }
                message = self.messages.recv() => {
                    let Some(message) = message else { return Ends::Left };
                    self.take(message);
                    self.take_all();
                }
                happened = process.next() => {
                    if let Err(broken) = self.hear(process, happened) {
                        return Ends::Broken(broken);
                    }
                }
            }
        }
    }

    /// Passes an answer on.
    fn hear(&mut self, process: &mut Process, happened: Happened) -> Result<(), Broken> {
        match happened {
            Happened::Broken(broken) => return Err(broken),
            Happened::Line => {}
        }
        let reply = process.reply(self.in_hand.tokens()).map_err(Broken::Misbehaved)?;
        let Reply::Settled { place, result } = reply else { return Ok(()) };
        process.has_answered();
        self.restarts.answered();
        self.counters.standing.answered();
        if let Some(entry) = self.in_hand.pop_sent(place) {
            entry.answer(result);
        }
        Ok(())
    }

    /// The process had no event in hand. Its remains are ended in the background.
    async fn lie_idle(&mut self, process: Process, broken: Broken) {
        match process.bury_idle(broken).await {
            How::Recycled => self.recycled(),
            How::Crashed(why) => self.crashed(&format!("{why} while idle"), NextStart::AfterCrash),
        }
    }

    /// Waits until a process that gave no answer is gone, and decides about its events in hand.
    async fn bury(&mut self, mut process: Process, mut broken: Broken) {
        // Answers that it gave before it ended count.
        let end = Instant::now();
        while matches!(broken, Broken::Closed)
            && let Some(happened) = process.last_answer(end).await
        {
            match self.hear(&mut process, happened) {
                Err(Broken::Closed) => break,
                Err(worse) => broken = worse,
                Ok(()) => {}
            }
        }
        if self.in_hand.is_idle() {
            return self.lie_idle(process, broken).await;
        }
        let end = process.bury(broken, self.in_hand.begins(), self.in_hand.is_one()).await;
        self.take_all();
        self.judge(&end);
    }

    /// Which event is to blame, and the consequence for each.
    fn judge(&mut self, end: &End) {
        let mut entries = self.in_hand.take_sent();
        let standing = &self.counters.standing;
        let follows: Vec<Follows> = entries
            .iter_mut()
            .map(|entry| {
                let had_event = entry.was_read(end.read);
                entry.blame.judge(&end.how, had_event, end.had_answered, standing)
            })
            .collect();
        match &end.how {
            How::Recycled => self.recycled(),
            How::Crashed(why) => {
                let is_a_crash = follows.iter().any(Follows::is_a_crash);
                let next = if is_a_crash { NextStart::AfterCrash } else { NextStart::Counted };
                self.crashed(why, next);
            }
        }
        let mut again = Vec::new();
        for (mut entry, follows) in entries.into_iter().zip(follows) {
            let was_read = entry.was_read(end.read);
            match follows {
                Follows::Again { .. } => {
                    self.counters.unanswered.fetch_add(u64::from(was_read), Relaxed);
                    entry.is_alone |= was_read;
                    again.push(entry);
                }
                Follows::Event => entry.answer(Err(errors::event_crashes(&self.last_crash))),
                Follows::Program => {
                    let failure = errors::does_not_work(&self.config, &self.last_crash);
                    entry.answer(Err(failure.with_effect(effect(was_read))));
                }
            }
        }
        self.in_hand.put_back(again);
    }

    /// The oldest event fails, and the others go to the next process.
    async fn give_up(&mut self, process: Process) {
        let (read, had_answered, words) = process.give_up().await;
        self.next = NextStart::Counted;
        self.take_all();
        if let Some(late) = self.in_hand.pop_sent(0) {
            let had_event = late.was_read(read);
            let works = had_answered || had_event && self.counters.standing.is_good();
            let failure = match works {
                true => errors::timed_out(&self.config, &late.job().attempt),
                false => errors::hangs(&self.config, had_event, &words),
            };
            late.answer(Err(failure.with_effect(effect(had_event))));
        }
        self.hand_on(read);
    }

    /// Kills a process whose progress with a cancelled event is unknown.
    fn kill(&mut self, process: Process) {
        let written = process.written();
        drop(process);
        self.next = NextStart::Counted;
        self.hand_on(written);
    }

    /// The events in hand of a process that has read this many bytes go to the next one, without
    /// blame.
    fn hand_on(&mut self, read: u64) {
        let others = self.in_hand.take_sent();
        let repeated = others.iter().filter(|entry| entry.was_read(read)).count();
        self.counters.unanswered.fetch_add(repeated as u64, Relaxed);
        self.in_hand.put_back(others);
    }

    /// Lets the process finish, if it has nothing in hand.
    async fn leave(&mut self, process: Process) {
        if let Some(Stop { patience, done }) = self.stop.take()
            && self.in_hand.is_idle()
        {
            process.drain(patience).await;
            drop(done);
        }
    }

    fn recycled(&mut self) {
        self.counters.recycles.fetch_add(1, Relaxed);
        self.next = NextStart::Free;
    }

    fn crashed(&mut self, why: &str, next: NextStart) {
        let why = excerpt(why);
        if let Some(Attempt { pool, worker, .. }) = self.last {
            tracing::warn!(pool = %pool, worker, "worker process crashed: {why}");
        }
        self.counters.crashes.add(&why, Instant::now());
        self.next = next;
        self.last_crash = why.into_owned();
    }
}
