//! One worker process: started, asked, and gone before anybody forgets it.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use super::{
    config::ExecConfig,
    counters::Counters,
    group::Group,
    lines::{Line, Lines},
    reply::{self, Reply},
    request,
    running::Running,
    stderr::Stderr,
    watch::Watch,
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

/// How long an answer of a process that is gone is looked for in its pipe. It is at its end at
/// once, unless something that the process has started holds it open.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// How long a process that was asked to end (SIGTERM) may take, and then what it started, before
/// they are killed.
const END_GRACE: Duration = Duration::from_secs(1);

/// Set for each worker process: it speaks this version of the protocol with greenroom, so that it
/// can keep what it prints at its start from its answers.
const PROTOCOL: (&str, &str) = ("GREENROOM_PROTOCOL", "1");

/// A running worker process and its pipes.
///
/// Dropping it kills the whole process group at once; the process is reaped in the background.
#[derive(Debug)]
pub(super) struct Process {
    /// Ends before anybody waits for the child.
    _watch: Watch,
    /// Goes before the child, whose number is that of the group for as long as it was not waited
    /// for.
    group: Group,
    child: Child,
    /// Gone once the process was told to finish.
    stdin: Option<ChildStdin>,
    stdout: Lines<ChildStdout>,
    stderr: Option<Stderr>,
    /// The line that is written, kept for its memory.
    line: Vec<u8>,
    /// How many bytes of it were written.
    written: u64,
    /// The token of the attempt in hand, or of the last one; counts from 1.
    token: u64,
    /// Answers so far: a process that answered once may end with code 0 just when the next event is on its way.
    answered: u64,
    _running: Running,
}

/// Why no answer came.
#[derive(Debug)]
pub(super) enum Broken {
    /// The process closed a pipe: it ended or is about to.
    Closed,
    /// The process does not keep to the protocol.
    Misbehaved(String),
}

/// The end of a process that gave no answer.
#[derive(Debug)]
pub(super) struct End {
    pub(super) how: How,
    /// Whether it may have read anything of the event in hand.
    pub(super) had_event: bool,
    /// Whether it had answered before.
    pub(super) had_answered: bool,
}

/// What the end of a process means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It asked to be replaced: code 0, after an answer, and it has read nothing of the event that
    /// was on its way.
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
    pub(super) fn start(
        config: &ExecConfig,
        counters: &Arc<Counters>,
        attempt: &Attempt,
    ) -> io::Result<Self> {
        let mut child = command(config)?.spawn()?;
        let group = Group::led_by(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok(Self {
            _watch: Watch::over(&child, &group, END_GRACE),
            group,
            child,
            stdin: Some(stdin),
            stdout: Lines::bounded(stdout, LONGEST_ANSWER),
            stderr: Some(Stderr::log(stderr, attempt)),
            line: Vec::new(),
            written: 0,
            token: 0,
            answered: 0,
            _running: Running::one_of(counters),
        })
    }

    /// How the process ended, if it did while nothing was in hand.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends what a process that has ended left behind, in the background.
    pub(super) fn clear_away(self) {
        self.group.end_in_background(END_GRACE);
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
        self.written = 0;
        request::write(self.token, attempt, event, &mut self.line);
        let stdin = self.stdin.as_mut().ok_or(Broken::Closed)?;
        let write = write(stdin, &self.line, &mut self.written);
        let exchange = async { tokio::try_join!(write, answer(&mut self.stdout, self.token)) };
        tokio::pin!(exchange);
        let ((), result) = tokio::select! {
            biased;
            done = &mut exchange => done?,
            // What it started may hold its pipes open: they do not tell that it is gone.
            _ = self.child.wait() => {
                timeout(LAST_ANSWER, exchange).await.map_err(|_| Broken::Closed)??
            }
        };
        self.answered += 1;
        Ok(result)
    }

    /// Ends a process that gave no answer, waits until it and what it started are gone, and says
    /// what its end means.
    pub(super) async fn bury(mut self, broken: Broken) -> End {
        let status = match &broken {
            // Its stdin stays open, so that what it has not read by its end is still there to be
            // looked at.
            Broken::Closed => {
                timeout(EXIT_GRACE, self.child.wait()).await.ok().and_then(Result::ok)
            }
            Broken::Misbehaved(_) => None,
        };
        if status.is_none() {
            self.terminate().await;
        }
        let (had_event, had_answered) = (self.may_have_read(), self.answered > 0);
        self.group.end(END_GRACE).await;
        let how = match (status, broken) {
            // With an event that it has read, it is no recycle: restarted for nothing, it could go on
            // like that for ever, and the event with it.
            (Some(status), _) if status.success() && had_answered && !had_event => How::Recycled,
            (Some(status), _) => {
                How::Crashed(format!("it ended with {status}{}", last_words(self.stderr).await))
            }
            (None, Broken::Misbehaved(why)) => How::Crashed(why),
            (None, Broken::Closed) => {
                let words = last_words(self.stderr).await;
                How::Crashed(format!("it closed its stdin or stdout but did not exit{words}"))
            }
        };
        End { how, had_event, had_answered }
    }

    /// Ends a process that is late with its answer, waits until it and what it started are gone,
    /// and says whether it may have read anything of the event, and whether it had answered before;
    /// then its last words.
    pub(super) async fn give_up(mut self) -> (bool, bool, String) {
        self.terminate().await;
        let (had_event, had_answered) = (self.may_have_read(), self.answered > 0);
        self.group.end(END_GRACE).await;
        (had_event, had_answered, last_words(self.stderr).await)
    }

    /// Closes the process's stdin, which tells it to finish, and waits for its exit; then ends what
    /// it started. Whoever is still there after `patience` is killed.
    pub(super) async fn drain(mut self, patience: Duration) {
        let grace = END_GRACE.min(patience / 3);
        self.stdin = None;
        if timeout(patience - grace * 2, self.exit()).await.is_err() {
            self.group.ask();
            if timeout(grace, self.exit()).await.is_err() {
                self.kill().await;
            }
        }
        self.group.end(grace).await;
    }

    /// Waits until the process is gone. One that still writes heartbeats while it finishes must not
    /// wait for a full pipe.
    async fn exit(&mut self) {
        tokio::select! {
            _ = self.child.wait() => {}
            () = read_to_nowhere(&mut self.stdout) => {}
        }
    }

    /// Asks the process and all that it started to end, kills them if it does not, and waits until
    /// it is gone.
    async fn terminate(&mut self) {
        if !self.group.ask() || timeout(END_GRACE, self.child.wait()).await.is_err() {
            self.kill().await;
        }
    }

    async fn kill(&mut self) {
        self.group.kill();
        // An error means that there is nothing left to kill or to wait for.
        let _ = self.child.start_kill();
        let _ = self.child.wait().await;
    }

    /// Whether the process may have read anything of the event in hand: no, where the pipe still
    /// holds all that was written. Looked at once it is gone, as it could read on before.
    fn may_have_read(&self) -> bool {
        let unread = self.stdin.as_ref().and_then(unread);
        unread.is_none_or(|unread| unread < self.written)
    }
}

/// How many bytes lie in a pipe, where the system tells.
#[cfg(unix)]
fn unread(pipe: &ChildStdin) -> Option<u64> {
    rustix::io::ioctl_fionread(pipe).ok()
}

#[cfg(not(unix))]
fn unread(_pipe: &ChildStdin) -> Option<u64> {
    None
}

/// Writes the whole line, and counts while it does.
async fn write(stdin: &mut ChildStdin, mut line: &[u8], written: &mut u64) -> Result<(), Broken> {
    while !line.is_empty() {
        let taken = stdin.write(line).await?;
        *written += taken as u64;
        line = line.get(taken..).filter(|_| taken > 0).ok_or(Broken::Closed)?;
    }
    Ok(())
}

/// The last lines on stderr of a process that is gone, as the end of a sentence.
async fn last_words(stderr: Option<Stderr>) -> String {
    match stderr {
        Some(stderr) => match stderr.last_words().await {
            words if words.is_empty() => String::new(),
            words => format!("; last on its stderr: {words}"),
        },
        None => String::new(),
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
        .env(PROTOCOL.0, PROTOCOL.1)
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
                let why =
                    format!("it wrote a line of more than {LONGEST_ANSWER} bytes to its stdout");
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
