//! Exit codes (C01), and the final messages of a command.

use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};

/// How long tasks that outlive a command (a handler that blocks its thread) may delay the exit.
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
    /// Prints the reason and the next step on standard error.
    pub fn because(self, message: impl fmt::Display) -> ExitCode {
        // When standard error is closed, nothing can be reported any more.
        let _ = writeln!(io::stderr(), "error: {message}");
        self.into()
    }
}

/// Prints an answer on standard output.
pub fn answer(text: &str) -> ExitCode {
    print(text, io::stdout(), "standard output")
}

/// Prints an answer on standard error, because standard output is used otherwise.
pub fn answer_aside(text: &str) -> ExitCode {
    print(text, io::stderr(), "standard error")
}

fn print(text: &str, mut to: impl Write, name: &str) -> ExitCode {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Ok(()) => Exit::Success.into(),
        // The reader has closed the pipe (`greenroom schema | head`).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success.into(),
        Err(error) => Exit::CouldNotRun.because(format_args!("cannot write to {name}: {error}")),
    }
}
