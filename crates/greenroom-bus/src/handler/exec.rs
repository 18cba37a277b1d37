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
//! - The end of stdin means drain: the process finishes and exits. After the pool's patience it is killed.
//! - The process leads a process group of its own: Ctrl-C in a terminal does not reach it, and a kill reaches all
//!   that it started.
//!
//! # When a process dies
//!
//! | it ends | with | then |
//! |---|---|---|
//! | idle | code 0 | a recycle: a fresh one at the next event, not counted |
//! | idle | anything else | a restart: a fresh one at the next event, which is not blamed |
//! | with an event in hand, after earlier answers | code 0 | taken as a recycle that crossed the event: the event goes to a fresh process, not blamed |
//! | with an event in hand | anything else | a crash: the event goes to a fresh process at once, in place, so that the order of its key holds; the second crash in a row is [`FailureKind::Crash`] |
//! | killed at its timeout | | gone before [`FailureKind::Timeout`] is returned; a fresh one at the next event |
//!
//! "In hand" begins when the first byte is written: a process that ended before is noticed first. A pipe that breaks
//! while the event is written counts like an end with the event in hand.
//!
//! Restarts after crashes draw on a budget ([`RestartLimit`]); once it is used up the handler answers
//! [`FailureKind::Pause`] until the window has passed, and no event is blamed. Kills at the timeout do not draw on
//! it, for the timeout limits them already. A command that cannot be started pauses the handler too.
//!
//! Price: two system calls and two context switches an event, some tens of microseconds. A worker that wants more
//! throughput per process needs the `http` handler or Rust.

mod lines;
mod process;
mod reply;
mod request;
mod restarts;
mod stderr;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

pub use restarts::RestartLimit;

use self::{
    process::{Broken, End, Process},
    restarts::Restarts,
};
use super::{Attempt, Failure, FailureKind, Handler, HandlerFactory, HandlerResult, Handling};
use crate::{BoxFuture, event::Event, excerpt::excerpt};

/// How long one attempt may take when the configuration does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// An event that crashed this many processes in a row is given up as the cause.
const CRASHES_TO_BLAME: u32 = 2;

/// What to run, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecConfig {
    /// The program and its arguments, as given to the system: no shell is involved.
    pub command: Vec<String>,
    /// How long one attempt may take; a fresh process starts within it. Default: 30 s.
    pub timeout: Duration,
    /// How many restarts are taken as normal, for each worker.
    pub restart: RestartLimit,
    /// Environment variables added to greenroom's own, which the process inherits.
    pub env: BTreeMap<String, String>,
    /// Where the process runs. Default: greenroom's working directory.
    pub cwd: Option<PathBuf>,
}

impl Default for ExecConfig {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            restart: RestartLimit::default(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }
}

/// What happened to the processes of one factory, all workers together.
#[derive(Debug, Default)]
struct Counters {
    /// Starts that replaced a process which crashed or was killed.
    restarts: AtomicU64,
    /// Processes that died, or broke the protocol and were killed for it.
    crashes: AtomicU64,
    /// Processes that ended with code 0 and nothing in hand.
    recycles: AtomicU64,
}

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
        }))
    }

    fn restarts(&self) -> u64 {
        self.counters.restarts.load(Relaxed)
    }

    /// How many processes died, or were killed for an answer that was not understood.
    fn crashes(&self) -> u64 {
        self.counters.crashes.load(Relaxed)
    }
}

/// What the next start of a process counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextStart {
    /// The first, or one after a recycle: not counted.
    Free,
    /// It replaces a process that was killed at its timeout or whose attempt was cancelled: counted as a restart.
    AfterKill,
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
    /// One attempt: at most [`CRASHES_TO_BLAME`] processes see the event, one after the other.
    async fn attempt(&mut self, event: &Event, attempt: &Attempt) -> HandlerResult {
        let mut crashes = 0;
        loop {
            let mut process = self.ready(attempt).await?;
            self.next = NextStart::AfterKill;
            let broken =
                match timeout(self.config.timeout, process.ask(event, attempt.number)).await {
                    Ok(Ok(result)) => return self.answered(process, result),
                    Ok(Err(broken)) => broken,
                    Err(_) => return Err(self.timed_out(process, attempt).await),
                };
            let Some(why) = self.bury(process, broken, attempt).await else { continue };
            crashes += 1;
            if crashes == CRASHES_TO_BLAME {
                let error = format!(
                    "exec: the worker process crashed twice in a row with this event in hand: {why}"
                );
                return Err(Failure::new(FailureKind::Crash, error));
            }
        }
    }

    fn answered(&mut self, process: Process, result: HandlerResult) -> HandlerResult {
        self.process = Some(process);
        self.restarts.answered();
        result
    }

    async fn timed_out(&self, mut process: Process, attempt: &Attempt) -> Failure {
        process.kill().await;
        let error = format!(
            "exec: worker {} of pool \"{}\" gave no answer within {:?} and was killed; if the work takes longer, raise `timeout`",
            attempt.worker, attempt.pool, self.config.timeout
        );
        Failure::new(FailureKind::Timeout, error)
    }

    /// Waits until a process that gave no answer is gone; returns why it crashed, or `None` after a recycle.
    async fn bury(
        &mut self,
        process: Process,
        broken: Broken,
        attempt: &Attempt,
    ) -> Option<String> {
        match process.bury(broken).await {
            End::Recycled => {
                self.recycled();
                None
            }
            End::Crashed(why) => {
                self.crashed(&why, attempt);
                Some(why)
            }
        }
    }

    /// A process that runs and has nothing in hand, taken out of `self`.
    async fn ready(&mut self, attempt: &Attempt) -> Result<Process, Failure> {
        if let Some(mut process) = self.process.take() {
            match process.ended() {
                None => return Ok(process),
                Some(status) if status.success() => self.recycled(),
                Some(status) => {
                    self.crashed(&format!("it ended with {status} while idle"), attempt)
                }
            }
        }
        self.start(attempt).await
    }

    async fn start(&mut self, attempt: &Attempt) -> Result<Process, Failure> {
        if self.next == NextStart::AfterCrash {
            let now = Instant::now();
            let delay =
                self.restarts.take(now, &mut rand::rng()).map_err(|wait| self.exhausted(wait))?;
            // The restart is taken: an attempt that is cancelled while it waits does not pay twice.
            self.next = NextStart::AfterKill;
            if !delay.is_zero() {
                sleep(delay).await;
            }
        }
        let process =
            Process::start(&self.config, attempt).map_err(|error| self.cannot_start(&error))?;
        if self.next == NextStart::AfterKill {
            self.counters.restarts.fetch_add(1, Relaxed);
        }
        Ok(process)
    }

    fn recycled(&mut self) {
        self.counters.recycles.fetch_add(1, Relaxed);
        self.next = NextStart::Free;
    }

    fn crashed(&mut self, why: &str, attempt: &Attempt) {
        let why = excerpt(why);
        tracing::warn!(pool = %attempt.pool, worker = attempt.worker, "worker process crashed: {why}");
        self.counters.crashes.fetch_add(1, Relaxed);
        self.next = NextStart::AfterCrash;
    }

    fn exhausted(&self, wait: Duration) -> Failure {
        let RestartLimit { max, window } = self.config.restart;
        let error = format!(
            "exec: {} crashed more than {max} times within {window:?}; paused, next start in {wait:.0?}; see its stderr in the log, or raise `restart.max`",
            self.program()
        );
        Failure::new(FailureKind::Pause, error)
    }

    fn cannot_start(&self, error: &std::io::Error) -> Failure {
        let place = match &self.config.cwd {
            Some(cwd) => format!(" in {}", cwd.display()),
            None => String::new(),
        };
        let error = format!(
            "exec: cannot start {}{place}: {error}; check `command` in the configuration",
            self.program()
        );
        Failure::new(FailureKind::Pause, error)
    }

    /// The program without its arguments, which may hold secrets.
    fn program(&self) -> String {
        format!("{:?}", self.config.command.first().map_or("", String::as_str))
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
