//! One worker process: started, asked, and gone before anybody forgets it.

use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::{
    ExecConfig,
    lines::{Line, Lines},
    reply::{self, Reply},
    request,
    stderr::Stderr,
};
use crate::{
    event::Event,
    handler::{Attempt, HandlerResult},
};

/// The longest answer in bytes; beyond it a worker is taken to have lost its line ends.
pub(super) const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// How long a process that closed its stdout, or stopped reading, may take to exit by itself, so that its exit code
/// can tell a recycle from a crash.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// A running worker process and its pipes.
///
/// Dropping it kills the whole process group at once; the process is reaped in the background.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    /// Gone once the process was told to finish.
    stdin: Option<ChildStdin>,
    stdout: Lines<ChildStdout>,
    stderr: Option<Stderr>,
    /// The line that is written, kept for its memory.
    line: Vec<u8>,
    /// The token of the attempt in hand, or of the last one; counts from 1.
    token: u64,
    /// Answers so far: a process that answered once may end with code 0 just when the next event is on its way.
    answered: u64,
}

/// Why no answer came.
#[derive(Debug)]
pub(super) enum Broken {
    /// The process closed a pipe: it ended or is about to.
    Closed,
    /// The process does not keep to the protocol.
    Misbehaved(String),
}

/// What the end of a process means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It asked to be replaced: code 0, nothing in hand.
    Recycled,
    /// It died, or was killed for what it answered; the words are for the operator.
    Crashed(String),
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl Process {
    /// Starts the configured command in a process group of its own, so that a Ctrl-C in the terminal reaches
    /// greenroom alone, which then drains.
    ///
    /// # Errors
    /// What the system answered.
    pub(super) fn start(config: &ExecConfig, attempt: &Attempt) -> io::Result<Self> {
        let mut child = command(config)?.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok(Self {
            child,
            stdin: Some(stdin),
            stdout: Lines::bounded(stdout, LONGEST_ANSWER),
            stderr: Some(Stderr::log(stderr, attempt)),
            line: Vec::new(),
            token: 0,
            answered: 0,
        })
    }

    /// How the process ended, if it did while nothing was in hand.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Hands the event to the process and reads its answer.
    ///
    /// Reading starts with the first byte written, so that a process which writes heartbeats into a full pipe while
    /// it is sent a large event does not wait for us as we wait for it.
    ///
    /// # Errors
    /// Why there is no answer; [`Process::bury`] says what that means.
    ///
    /// # Cancel safety
    /// Not safe: the process has the event in hand and must be killed, which dropping it does.
    pub(super) async fn ask(
        &mut self,
        event: &Event,
        attempt: u32,
    ) -> Result<HandlerResult, Broken> {
        self.token += 1;
        request::write(self.token, attempt, event, &mut self.line);
        let stdin = self.stdin.as_mut().ok_or(Broken::Closed)?;
        let write = async { stdin.write_all(&self.line).await.map_err(Broken::from) };
        let ((), result) = tokio::try_join!(write, answer(&mut self.stdout, self.token))?;
        self.answered += 1;
        Ok(result)
    }

    /// Ends a process that gave no answer, waits until it is gone, and says what its end means.
    pub(super) async fn bury(mut self, broken: Broken) -> End {
        self.stdin = None;
        let status = match &broken {
            Broken::Closed => {
                timeout(EXIT_GRACE, self.child.wait()).await.ok().and_then(Result::ok)
            }
            Broken::Misbehaved(_) => None,
        };
        match (status, broken) {
            (Some(status), _) if status.success() && self.answered > 0 => End::Recycled,
            (Some(status), _) => {
                End::Crashed(format!("it ended with {status}{}", self.last_words().await))
            }
            (None, Broken::Closed) => {
                self.kill().await;
                End::Crashed("it closed its stdin or stdout but did not exit".into())
            }
            (None, Broken::Misbehaved(why)) => {
                self.kill().await;
                End::Crashed(why)
            }
        }
    }

    /// Kills the process with all that it started, and waits until it is gone.
    pub(super) async fn kill(&mut self) {
        self.kill_group();
        // An error means that there is nothing left to wait for.
        let _ = self.child.wait().await;
    }

    /// Closes the process's stdin, which tells it to finish, and waits for its exit; kills it after `patience`.
    pub(super) async fn drain(mut self, patience: Duration) {
        self.stdin = None;
        let exit = async {
            tokio::select! {
                _ = self.child.wait() => {}
                () = read_to_nowhere(&mut self.stdout) => {}
            }
        };
        if timeout(patience, exit).await.is_err() {
            self.kill().await;
        }
    }

    /// The last line on stderr, as the end of a sentence.
    async fn last_words(&mut self) -> String {
        match self.stderr.take() {
            Some(stderr) => match stderr.last_words().await {
                words if words.is_empty() => String::new(),
                words => format!("; last on its stderr: {words}"),
            },
            None => String::new(),
        }
    }

    #[cfg(unix)]
    fn kill_group(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // `id` is there until the process has been reaped, so it cannot name somebody else's group.
        let group = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(group) = group {
            // An error means that the group is gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn kill_group(&mut self) {
        // An error means that the process is gone.
        let _ = self.child.start_kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// The command as configured, with all three pipes.
fn command(config: &ExecConfig) -> io::Result<Command> {
    let Some((program, arguments)) = config.command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(&config.env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(directory) = &config.cwd {
        command.current_dir(directory);
    }
    #[cfg(unix)]
    command.process_group(0);
    Ok(command)
}

/// Reads on until the answer for `token`: blank lines and heartbeats are passed over.
async fn answer(stdout: &mut Lines<ChildStdout>, token: u64) -> Result<HandlerResult, Broken> {
    loop {
        match stdout.next().await? {
            Line::End => return Err(Broken::Closed),
            Line::TooLong => {
                let why = format!("it wrote a line of more than {LONGEST_ANSWER} bytes");
                return Err(Broken::Misbehaved(why));
            }
            Line::Whole if stdout.current().trim_ascii().is_empty() => {}
            Line::Whole => match reply::read(stdout.current(), token) {
                Ok(Reply::Settled(result)) => return Ok(result),
                Ok(Reply::Heartbeat) => {}
                Err(why) => return Err(Broken::Misbehaved(why)),
            },
        }
    }
}

/// Reads and forgets, for ever: a process that still writes heartbeats while it finishes must not wait for a full pipe.
async fn read_to_nowhere(stdout: &mut Lines<ChildStdout>) {
    while matches!(stdout.next().await, Ok(Line::Whole)) {}
    std::future::pending().await
}
