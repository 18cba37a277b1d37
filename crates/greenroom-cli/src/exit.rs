//! Exit codes (C01), and how a command ends with words.

use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

/// How long tasks that outlive a command (a handler that blocks its thread) may hold up the exit.
pub(crate) const LAST_TASKS: Duration = Duration::from_millis(100);

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// 0: everything was handled, ignored or dead-lettered by policy.
    Success,
    /// 1: it could not run.
    CouldNotRun,
    /// 2: the configuration or the command line is wrong.
    BadConfiguration,
    /// 3: it ended with events refused or unsettled.
    Refused,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::CouldNotRun => 1,
            Exit::BadConfiguration => 2,
            Exit::Refused => 3,
        })
    }
}

impl Exit {
    /// Prints why on standard error, and the next step.
    pub fn because(self, message: impl fmt::Display) -> ExitCode {
        // Nothing is left to be told when standard error is gone.
        let _ = writeln!(io::stderr(), "error: {message}");
        self.into()
    }
}

/// Prints an answer on standard output.
pub fn answer(text: &str) -> ExitCode {
    print(text, io::stdout(), "standard output")
}

/// Prints an answer on standard error, because standard output has something else.
pub fn answer_aside(text: &str) -> ExitCode {
    print(text, io::stderr(), "standard error")
}

fn print(text: &str, mut to: impl Write, name: &str) -> ExitCode {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Ok(()) => Exit::Success.into(),
        // The reader has seen enough (`greenroom schema | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success.into(),
        Err(error) => Exit::CouldNotRun.because(format_args!("cannot write to {name}: {error}")),
    }
}
