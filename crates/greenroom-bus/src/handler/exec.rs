//! `exec`: events handled by programs in any language, as long-lived worker processes.
//!
//! Each worker of the pool owns one process, started when its first event comes. One event is in hand at a time; the
//! pool's workers are the parallelism. The protocol is one line of JSON each way; `docs/process-protocol.md` has it for
//! authors of workers, with examples in Python, Node and shell:
//!
//! ```text
//! greenroom ── {"token":"17","attempt":1,"event":{"specversion":"1.0","id":"a1",…}} ──▶ stdin
//! stdout ──▶ {"token":"17","outcome":"success","events":[{…},{…}]} ──▶ greenroom
//! stderr ──▶ greenroom's log
//! ```
//!
//! | `outcome` | further fields | what follows |
//! |---|---|---|
//! | `success` | `events`: CloudEvents, may be left out | the event is handled; `events` go to the outputs |
//! | `pass` | | the event is handled and goes to the outputs as it came |
//! | `failure` | `error`, `retry_after_ms`: may be left out | tried again, after that time or the configured backoff |
//! | `reject` | `error`: may be left out | no attempt will help: a dead letter at once |
//! | `released` | `error`: may be left out | given back unstarted: tried again soon, no attempt counted |
//!
//! - The token is opaque, differs from event to event, and comes first in the line so that a shell can cut it out.
//!   `attempt` counts from 1.
//! - `{"heartbeat":true}` and empty lines are allowed at any time. A heartbeat says that the process lives; it does
//!   not extend the timeout.
//! - A line that is not understood is a crash of that process: no JSON, an unknown field, a field that does not go with the
//!   outcome, an unknown outcome, another token than the one in hand, more than 16 MiB. The process is killed. An
//!   entry of `events` that is no CloudEvent rejects the event instead.
//! - The end of stdin means drain: the process finishes and exits. After the pool's patience it is
//!   ended.
//! - The process leads a process group of its own: Ctrl-C in a terminal does not reach it. When it
//!   ends or is ended, so are all that it started: SIGTERM, and SIGKILL a second later.
//!
//! # When a process dies
//!
//! | it ends | with | then |
//! |---|---|---|
//! | idle | code 0 | a recycle: a fresh one at the next event, not counted |
//! | idle | anything else | a restart: a fresh one at the next event, which is not blamed |
//! | with an event in hand of which it has read nothing, after earlier answers | code 0 | a recycle that crossed the event: the event goes to a fresh process, not blamed |
//! | with an event in hand, of a program that works | anything else, or code 0 | a crash: the event goes to a fresh process at once, in place, so that the order of its key holds; the second crash in a row is [`FailureKind::Crash`] |
//! | before it could work | anything | a failed start: once more at once; the second in a row is [`FailureKind::Pause`], and no event is blamed |
//! | ended at its timeout | | gone before [`FailureKind::Timeout`] is returned, or [`FailureKind::Pause`] where it could not have worked; a fresh one at the next event |
//!
//! "In hand" begins when the first byte is written: a process that ended before is noticed first. A pipe that breaks
//! while the event is written counts like an end with the event in hand.
//!
//! A process "could not work" that has never answered and has not read the event (where the system
//! tells how much lies in a pipe), or whose program has not shown that it works. It has when any
//! worker's process has answered. That is good for three events to be given up in a row, over all
//! workers; with the next, the program is taken to be broken until it has answered again.
//!
//! Restarts after crashes draw on a budget ([`RestartLimit`]); once it is used up the handler
//! answers [`FailureKind::Pause`] until the window has passed, and no event is blamed. Kills at the
//! timeout do not draw on it, for the timeout limits them already; nor do failed starts, which
//! pause the handler. A command that cannot be started pauses the handler too, unless it is for
//! want of files, processes or memory and other workers have a process: then the event is given
//! back.
//!
//! Price: two system calls and two context switches an event, some tens of microseconds. A worker that wants more
//! throughput per process needs the `http` handler or Rust.

mod blame;
mod config;
mod counters;
mod errors;
#[doc(hidden)]
pub mod fuzzed;
mod group;
mod lines;
mod printable;
mod process;
mod reply;
mod request;
mod restarts;
mod running;
mod standing;
mod stderr;
mod watch;

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

pub use config::ExecConfig;
pub use group::kill_all;
pub use restarts::RestartLimit;

use self::{
    blame::{Blame, Follows},
    counters::Counters,
    process::{Broken, How, Process},
    restarts::Restarts,
};
use super::{
    Attempt, Effect, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling,
};
use crate::{BoxFuture, event::Event, excerpt::excerpt};

/// Builds [`Exec`] handlers and counts what happens to their processes.
#[derive(Debug, Clone)]
pub struct ExecFactory {
    config: Arc<ExecConfig>,
    counters: Arc<Counters>,
}

impl ExecFactory {
    /// A factory of handlers that run `config.command`. Starts nothing yet.
    ///
    /// # Errors
    /// A sentence for the operator if there is no command to run or no time to run it in.
    pub fn new(config: ExecConfig) -> Result<Self, String> {
        if config.command.first().is_none_or(String::is_empty) {
            return Err(
                "exec: `command` is empty; name a program, such as [\"python3\", \"worker.py\"]"
                    .into(),
            );
        }
        if config.timeout.is_zero() {
            return Err("exec: `timeout` is 0; give the longest time that an event may take".into());
        }
        Ok(Self { config: Arc::new(config), counters: Arc::default() })
    }

    /// How many processes ended with code 0 and nothing in hand.
    pub fn recycles(&self) -> u64 {
        self.counters.recycles.load(Relaxed)
    }
}

impl HandlerFactory for ExecFactory {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(Exec {
            config: self.config.clone(),
            counters: self.counters.clone(),
            restarts: Restarts::new(self.config.restart),
            process: None,
            next: NextStart::Free,
            is_short: false,
            last_crash: String::new(),
        }))
    }

    fn restarts(&self) -> u64 {
        self.counters.restarts.load(Relaxed)
    }

    /// How many processes died, or were killed for an answer that was not understood.
    fn crashes(&self) -> u64 {
        self.counters.crashes.load(Relaxed)
    }

    fn unanswered(&self) -> u64 {
        self.counters.unanswered.load(Relaxed)
    }
}

/// What the next start of a process counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStart {
    /// The first, or one after a recycle: not counted.
    Free,
    /// It replaces a process that was ended at its timeout, whose attempt was cancelled, or that
    /// could not begin: counted as a restart.
    Counted,
    /// It replaces a process that crashed: counted, and taken from the budget.
    AfterCrash,
}

/// Hands events to one process, one at a time, and replaces the process when it is gone.
#[derive(Debug)]
pub struct Exec {
    config: Arc<ExecConfig>,
    counters: Arc<Counters>,
    restarts: Restarts,
    /// The process, while it has nothing in hand. An attempt takes it out and puts it back with its answer, so that a
    /// cancelled attempt drops it, which kills it: nobody knows how far it got.
    process: Option<Process>,
    next: NextStart,
    /// No process could be started for want of something, and the log has said so.
    is_short: bool,
    /// What was said of the last process that crashed.
    last_crash: String,
}

impl Handler for Exec {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(self.attempt(event, attempt)))
    }

    fn stop(&mut self, patience: Duration) -> BoxFuture<'_, ()> {
        let process = self.process.take();
        Box::pin(async move {
            if let Some(process) = process {
                process.drain(patience).await;
            }
        })
    }
}

impl Exec {
    /// One attempt: a process that ends without an answer is followed by another one, which gets
    /// the event in its place.
    async fn attempt(&mut self, event: &Event, attempt: &Attempt) -> HandlerResult {
        let mut blame = Blame::default();
        loop {
            let mut process = self.ready(attempt).await?;
            self.next = NextStart::Counted;
            let broken =
                match timeout(self.config.timeout, process.ask(event, attempt.number)).await {
                    Ok(Ok(result)) => return self.answered(process, result),
                    Ok(Err(broken)) => broken,
                    Err(_) => return Err(self.timed_out(process, attempt).await),
                };
            if let Some(failure) = self.bury(process, broken, attempt, &mut blame).await {
                return Err(failure);
            }
        }
    }

    fn answered(&mut self, process: Process, result: HandlerResult) -> HandlerResult {
        self.process = Some(process);
        self.restarts.answered();
        self.counters.standing.answered();
        result
    }

    async fn timed_out(&self, process: Process, attempt: &Attempt) -> Failure {
        let (had_event, had_answered, words) = process.give_up().await;
        let failure = match had_answered || had_event && self.counters.standing.is_good() {
            true => errors::timed_out(&self.config, attempt),
            false => errors::hangs(&self.config, had_event, &words),
        };
        failure.with_effect(effect(had_event))
    }

    /// Waits until a process that gave no answer is gone, and returns the failure if no other one
    /// is to follow.
    async fn bury(
        &mut self,
        process: Process,
        broken: Broken,
        attempt: &Attempt,
        blame: &mut Blame,
    ) -> Option<Failure> {
        let end = process.bury(broken).await;
        let follows = blame.judge(&end, &self.counters.standing);
        match &end.how {
            How::Recycled => self.recycled(),
            How::Crashed(why) if follows.is_a_crash() => {
                self.crashed(why, attempt, NextStart::AfterCrash);
            }
            How::Crashed(why) => self.crashed(why, attempt, NextStart::Counted),
        }
        match follows {
            Follows::Again { .. } => {
                self.counters.unanswered.fetch_add(u64::from(end.had_event), Relaxed);
                None
            }
            Follows::Event => Some(errors::event_crashes(&self.last_crash)),
            Follows::Program => {
                let failure = errors::does_not_work(&self.config, &self.last_crash);
                Some(failure.with_effect(effect(end.had_event)))
            }
        }
    }

    /// A process that runs and has nothing in hand, taken out of `self`.
    async fn ready(&mut self, attempt: &Attempt) -> Result<Process, Failure> {
        if let Some(mut process) = self.process.take() {
            let Some(status) = process.ended() else { return Ok(process) };
            process.clear_away();
            match status.success() {
                true => self.recycled(),
                false => {
                    let why = format!("it ended with {status} while idle");
                    self.crashed(&why, attempt, NextStart::AfterCrash);
                }
            }
        }
        self.start(attempt).await
    }

    async fn start(&mut self, attempt: &Attempt) -> Result<Process, Failure> {
        if self.next == NextStart::AfterCrash {
            let now = Instant::now();
            let delay = self
                .restarts
                .take(now, &mut rand::rng())
                .map_err(|wait| errors::exhausted(&self.config, &self.last_crash, wait))?;
            // The restart is taken: an attempt that is cancelled while it waits does not pay twice.
            self.next = NextStart::Counted;
            if !delay.is_zero() {
                sleep(delay).await;
            }
        }
        let process = Process::start(&self.config, &self.counters, attempt)
            .map_err(|error| self.cannot_start(&error, attempt))?;
        self.is_short = false;
        if self.next == NextStart::Counted {
            self.counters.restarts.fetch_add(1, Relaxed);
        }
        Ok(process)
    }

    fn cannot_start(&mut self, error: &io::Error, attempt: &Attempt) -> Failure {
        if !is_for_want_of_something(error) {
            return errors::cannot_start(&self.config, error);
        }
        let failure = errors::is_short(&self.config, error, self.counters.running.load(Relaxed));
        // An event that is given back is told of nowhere else.
        if failure.kind == FailureKind::Released && !std::mem::replace(&mut self.is_short, true) {
            let (pool, worker) = (attempt.pool, attempt.worker);
            tracing::warn!(pool = %pool, worker, "{failure}; meanwhile this worker gives its events back");
        }
        failure
    }

    fn recycled(&mut self) {
        self.counters.recycles.fetch_add(1, Relaxed);
        self.next = NextStart::Free;
    }

    fn crashed(&mut self, why: &str, attempt: &Attempt, next: NextStart) {
        let why = excerpt(why);
        tracing::warn!(pool = %attempt.pool, worker = attempt.worker, "worker process crashed: {why}");
        self.counters.crashes.fetch_add(1, Relaxed);
        self.next = next;
        self.last_crash = why.into_owned();
    }
}

/// What an attempt may have done, by whether its process may have read the event.
fn effect(had_event: bool) -> Effect {
    if had_event { Effect::Unknown } else { Effect::None }
}

/// Whether a process cannot be started because files, processes or memory are used up, which says
/// nothing of the program.
#[cfg(unix)]
fn is_for_want_of_something(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let wanting = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| wanting.contains(&error))
}

#[cfg(not(unix))]
fn is_for_want_of_something(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
