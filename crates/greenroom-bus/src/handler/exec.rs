//! `exec`: events handled by programs in any language, as long-lived worker processes.
//!
//! Each worker of the pool owns one process, started when its first event comes. One event
//! is in hand at a time; the pool's workers are the parallelism. With
//! [`ExecConfig::in_flight`] as many workers share a process, which has as many events in
//! hand: the next is in its pipe while it works on one, or it works on several. The protocol
//! is one line of JSON each way; `docs/process-protocol.md` has it for authors of workers,
//! with examples in Python, Node and shell:
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
//! - The token is opaque, differs from event to event, and comes first in the line so that a shell
//!   can cut it out. `attempt` counts from 1.
//! - `{"heartbeat":true}` and empty lines are allowed at any time. A heartbeat says that the
//!   process lives; it does not extend the timeout.
//! - A line that is not understood is a crash of that process: no JSON, an unknown field, a
//!   field that does not go with the outcome, an unknown outcome, a token that is not in hand,
//!   more than 16 MiB. The process is killed. An entry of `events` that is no CloudEvent
//!   rejects the event instead.
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
//! | with an event in hand, of a program that works | anything else, or code 0 | a crash: the event goes to a fresh process at once, in place, so that the order of its key holds; the second crash in a row is [`FailureKind::Crash`](super::FailureKind::Crash) |
//! | before it could work | anything | a failed start: once more at once; the second in a row is [`FailureKind::Broken`](super::FailureKind::Broken), and no event is blamed |
//! | ended at its timeout | | gone before [`FailureKind::Timeout`](super::FailureKind::Timeout) is returned, or [`FailureKind::Broken`](super::FailureKind::Broken) where it could not have worked; a fresh one at the next event |
//!
//! "In hand" begins when the first byte is written: a process that ended before is noticed first. A
//! pipe that breaks while the event is written counts like an end with the event in hand.
//!
//! If a process ends with several events in hand, each one that it may have read counts a crash,
//! and goes to the next process alone: this isolates the event that kills its process, and no other
//! is given up for it. An exit with code 0 is then a recycle, however much the process had read
//! ahead. At a timeout, or when an attempt is cancelled, the others go to the next process without
//! blame.
//!
//! A process "could not work" if it has never answered and has not read the event (on systems that
//! show how much is left in a pipe), or if its program has not shown that it works. An answer from
//! any worker's process shows that. It is enough to give up three events in a row, over all
//! workers; at the next, the program is considered broken until it has answered again.
//!
//! Restarts after crashes draw on a budget ([`RestartLimit`]); once it is used up the handler
//! answers [`FailureKind::Broken`](super::FailureKind::Broken) until the window has passed, and no
//! event is blamed. Kills at the timeout do not draw on it, because the timeout limits them
//! already; nor do failed starts, which pause the handler. A command that cannot be started pauses
//! the handler too, unless the cause is a lack of files, processes or memory and other workers have
//! a process: then the event is given back.
//!
//! Price: two system calls and two context switches per event, some tens of microseconds. With
//! several events in flight, those that arrive together share them.

mod blame;
mod counters;
mod crashes;
mod desk;
mod driver;
mod errors;
#[doc(hidden)]
pub mod fuzzed;
mod group;
mod in_hand;
mod kind;
mod lines;
mod message;
mod options;
mod process;
mod reply;
mod request;
mod restarts;
mod running;
mod standing;
mod stderr;
mod unwritten;

use std::{
    sync::{Arc, Weak, atomic::Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

pub use group::kill_all;
pub use kind::HANDLER;
pub use options::ExecConfig;
pub use restarts::RestartLimit;

use self::{counters::Counters, desk::Desk};
use super::{Attempt, CrashLoop, Handler, HandlerFactory, HandlerResult, Handling};
use crate::{BoxFuture, event::Event};

/// Builds [`Exec`] handlers and counts the restarts and crashes of their processes.
#[derive(Debug, Clone)]
pub struct ExecFactory {
    config: Arc<ExecConfig>,
    counters: Arc<Counters>,
    /// By the number of the process.
    desks: Arc<Mutex<Vec<Weak<Desk>>>>,
}

impl ExecFactory {
    /// A factory of handlers that run `config.command`. Starts nothing yet.
    ///
    /// # Errors
    /// A sentence for the operator if there is no command to run, no time to run it in, or nothing
    /// that may be in flight.
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
        if config.in_flight == 0 {
            return Err(
                "exec: `in_flight` is 0; give a process at least one event at a time".into()
            );
        }
        Ok(Self { config: Arc::new(config), counters: Arc::default(), desks: Arc::default() })
    }

    /// The desk to which this worker hands its events: a shared one, or a new one.
    fn desk(&self, worker: usize) -> Arc<Desk> {
        let place = worker / self.config.in_flight;
        let mut desks = self.desks.lock();
        if desks.len() <= place {
            desks.resize(place + 1, Weak::new());
        }
        if let Some(desk) = desks[place].upgrade().filter(|desk| desk.join()) {
            return desk;
        }
        let desk = Arc::new(Desk::new(&self.config, &self.counters));
        desks[place] = Arc::downgrade(&desk);
        desk
    }

    /// How many processes ended with code 0 and nothing in hand.
    pub fn recycles(&self) -> u64 {
        self.counters.recycles.load(Relaxed)
    }
}

impl HandlerFactory for ExecFactory {
    fn build(&self, worker: usize) -> Result<Box<dyn Handler>, String> {
        let desk = Some(self.desk(worker));
        Ok(Box::new(Exec { desk, is_open: false, line: Vec::new() }))
    }

    fn restarts(&self) -> u64 {
        self.counters.restarts.load(Relaxed)
    }

    fn sends_fence(&self) -> bool {
        true
    }

    /// How many processes died, or were killed for an answer that was not understood.
    fn crashes(&self) -> u64 {
        self.counters.crashes.total()
    }

    fn crash_loop(&self) -> Option<CrashLoop> {
        self.counters.crashes.crash_loop(Instant::now())
    }

    fn unanswered(&self) -> u64 {
        self.counters.unanswered.load(Relaxed)
    }
}

/// Hands events to one process, one at a time.
#[derive(Debug)]
pub struct Exec {
    /// Gone once it was stopped.
    desk: Option<Arc<Desk>>,
    is_open: bool,
    /// Kept for its memory.
    line: Vec<u8>,
}

impl Handler for Exec {
    fn handle<'a>(&'a mut self, event: &'a Event, attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(self.attempt(event, attempt)))
    }

    fn stop(&mut self, patience: Duration) -> BoxFuture<'_, ()> {
        let desk = self.desk.take().filter(|desk| desk.leave());
        Box::pin(async move {
            if let Some(desk) = desk {
                desk.stop(patience).await;
            }
        })
    }
}

impl Exec {
    async fn attempt(&mut self, event: &Event, attempt: &Attempt) -> HandlerResult {
        let Some(desk) = &self.desk else { return Err(errors::no_driver()) };
        if !std::mem::replace(&mut self.is_open, true) {
            desk.open();
        }
        let mut line = std::mem::take(&mut self.line);
        request::write_rest(attempt.number, attempt.fence, event, &mut line);
        let answer = desk.ask(line, attempt).await;
        self.line = answer.line;
        answer.result
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        if let Some(desk) = self.desk.take() {
            desk.leave();
        }
    }
}

#[cfg(test)]
mod tests;
