//! Errors in words for an operator: the command, the failure, and the next step.

use std::{io, time::Duration};

use super::{options::ExecConfig, restarts::RestartLimit};
use crate::handler::{Attempt, Effect, Failure, FailureKind};

/// The program could not be run at all.
pub(super) fn cannot_start(config: &ExecConfig, error: &io::Error) -> Failure {
    let error = format!(
        "exec: cannot start {}: {error}; check `command` and `cwd` in the configuration",
        command(config)
    );
    unsent(FailureKind::Broken, error)
}

/// The program could not be run for now; `others` of its processes run.
pub(super) fn is_short(config: &ExecConfig, error: &io::Error, others: usize) -> Failure {
    let kind = if others > 0 { FailureKind::Released } else { FailureKind::Broken };
    let error = format!(
        "exec: cannot start {}: {error}; {others} of its processes run; raise the limit of greenroom's process \
         (`ulimit -n` for files, `ulimit -u` for processes, or its memory), or lower the pool's `workers`",
        command(config)
    );
    unsent(kind, error)
}

/// Processes end without an answer, and no event is the cause.
pub(super) fn does_not_work(config: &ExecConfig, why: &str) -> Failure {
    let error = format!(
        "exec: {} does not work, and no event is blamed: its processes end before they have answered: {why}; run it by \
         hand, and see that it reads events from its stdin and writes nothing but answers to its stdout",
        command(config)
    );
    Failure::new(FailureKind::Broken, error)
}

/// A process has not answered in time, and no event is the cause.
pub(super) fn hangs(config: &ExecConfig, had_event: bool, words: &str) -> Failure {
    let what = match had_event {
        true => "has read its first event and not answered it",
        false => "has not read an event",
    };
    let error = format!(
        "exec: {} does not work, and no event is blamed: its process {what} within {:?} and was killed{words}; if it takes \
         longer to start, raise `timeout`, and see that it flushes its stdout after each answer",
        command(config),
        config.timeout
    );
    Failure::new(FailureKind::Broken, error)
}

/// One of a program that works has not answered in time.
pub(super) fn timed_out(config: &ExecConfig, attempt: &Attempt) -> Failure {
    let error = format!(
        "exec: worker {} of pool \"{}\" gave no answer within {:?} and was killed; if the work takes longer, raise `timeout`",
        attempt.worker, attempt.pool, config.timeout
    );
    Failure::new(FailureKind::Timeout, error)
}

/// The event kills the processes that have it in hand.
pub(super) fn event_crashes(why: &str) -> Failure {
    let error =
        format!("exec: the worker process crashed twice in a row with this event in hand: {why}");
    Failure::new(FailureKind::Crash, error)
}

/// The task that drives the process is gone, which only a panic does to it.
pub(super) fn no_driver() -> Failure {
    let error = "exec: the task that drives the worker process has ended; its panic is in the log";
    Failure::new(FailureKind::Retry { after: None }, error)
}

/// Restarts are used up.
pub(super) fn exhausted(config: &ExecConfig, last: &str, wait: Duration) -> Failure {
    let RestartLimit { max, window } = config.restart;
    let error = format!(
        "exec: {} crashed more than {max} times within {window:?}, at last because {last}; paused, next start in \
         {wait:.0?}; see its stderr in the log, or raise `restart.max`",
        command(config)
    );
    unsent(FailureKind::Broken, error)
}

fn unsent(kind: FailureKind, error: String) -> Failure {
    Failure::new(kind, error).with_effect(Effect::None)
}

/// The program without its arguments, which may hold secrets, and its directory.
fn command(config: &ExecConfig) -> String {
    let program = config.command.first().map_or("", String::as_str);
    match &config.cwd {
        Some(cwd) => format!("{program:?} in {}", cwd.display()),
        None => format!("{program:?}"),
    }
}

/// The possible effect of an attempt, depending on whether its process may have read the event.
pub(super) fn effect(had_event: bool) -> Effect {
    if had_event { Effect::Unknown } else { Effect::None }
}

/// Whether a process cannot be started because files, processes or memory are used up, which says
/// nothing of the program.
pub(super) fn is_for_want_of_something(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let wanting = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| wanting.contains(&error))
}
