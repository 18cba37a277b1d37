//! One worker process: started, written to, read, and gone before anybody forgets it.

use std::{
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout, timeout_at},
};

use super::{
    counters::Counters,
    group::ProcessGroup,
    lines::{LineReader, NextLine},
    options::ExecConfig,
    reply::{self, Reply},
    request,
    running::Running,
    stderr::Stderr,
    unwritten::UnwrittenLines,
};
use crate::handler::Attempt;

/// The longest answer in bytes; beyond it a worker is taken to have lost its line ends.
pub(super) const LONGEST_ANSWER: usize = 16 * 1024 * 1024;

/// How long a process that closed its stdout, or stopped reading, may take to exit by itself, so
/// that its exit code can tell a recycle from a crash.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// How long an answer of a process that is gone is looked for in its pipe. It is at its end at
/// once, unless something that the process has started holds it open.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// How long a process may take after SIGTERM, and then its children, before they are killed.
const END_GRACE: Duration = Duration::from_secs(1);

/// Set for each worker process: the version of the protocol that it speaks with greenroom, so that
/// it can keep its startup output apart from its answers.
const PROTOCOL: (&str, &str) = ("GREENROOM_PROTOCOL", "1");

/// A running worker process and its pipes.
///
/// Dropping it kills the whole process group at once; the process is reaped in the background.
#[derive(Debug)]
pub(super) struct Process {
    /// Dropped before the child, whose number belongs to the group until the child was waited for.
    group: ProcessGroup,
    child: Child,
    /// Gone once the process was told to finish.
    stdin: Option<ChildStdin>,
    stdout: LineReader<ChildStdout>,
    stderr: Option<Stderr>,
    lines: UnwrittenLines,
    /// The last token; counts from 1.
    token: u64,
    /// A process that has answered may end with code 0 just when the next event is on its way.
    had_answered: bool,
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

/// An event of a process.
#[derive(Debug)]
pub(super) enum Happened {
    /// It has written a line, for [`Process::reply`].
    Line,
    /// It is broken.
    Broken(Broken),
}

/// The end of a process that had events in hand.
#[derive(Debug)]
pub(super) struct End {
    pub(super) how: How,
    /// How many bytes of all that it was sent it may have read.
    pub(super) read: u64,
    /// Whether it had answered before.
    pub(super) had_answered: bool,
}

/// The meaning of a process's end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It asked to be replaced: code 0, after an answer, and it has read nothing of the event that
    /// was on its way. Of several, it may have read ahead.
    Recycled,
    /// It died, or was killed because of its answer; the words are for the operator.
    Crashed(String),
}

impl Process {
    /// Starts the configured command in a process group of its own, so that a Ctrl-C in the
    /// terminal reaches greenroom alone, which then drains.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn start(
        config: &ExecConfig,
        counters: &Arc<Counters>,
        attempt: &Attempt,
    ) -> io::Result<Self> {
        let mut child = command(config)?.spawn()?;
        let group = ProcessGroup::led_by(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the process has no pipes"));
        };
        Ok(Self {
            group,
            child,
            stdin: Some(stdin),
            stdout: LineReader::bounded(stdout, LONGEST_ANSWER),
            stderr: Some(Stderr::log(stderr, attempt)),
            lines: UnwrittenLines::default(),
            token: 0,
            had_answered: false,
            _running: Running::one_of(counters),
        })
    }

    /// Has a line written by [`next`](Self::next), behind a new token. Returns that, and where the
    /// line begins in all that is written.
    pub(super) fn send(&mut self, line: &[u8]) -> (u64, u64) {
        self.token += 1;
        let (lines, begins) = self.lines.line();
        request::begin(self.token, lines);
        lines.extend_from_slice(line);
        (self.token, begins)
    }

    /// How many bytes its pipe has taken.
    pub(super) fn written(&self) -> u64 {
        self.lines.written()
    }

    /// Writes queued requests, and waits for the next event of the process.
    ///
    /// It is read while it is written to, so that a process which writes heartbeats into a full
    /// pipe while it is sent a large event does not wait for us as we wait for it.
    ///
    /// # Cancel safety
    /// Nothing is lost: the next call continues.
    pub(super) async fn next(&mut self) -> Happened {
        loop {
            let Self { child, stdin, stdout, lines, .. } = self;
            let rest = lines.rest();
            let count = tokio::select! {
                biased;
                count = write(stdin, rest), if !rest.is_empty() => count,
                line = stdout.next() => return happened(line),
                // Its children may hold its pipes open, so these do not show that it is gone.
                _ = child.wait() => return Happened::Broken(Broken::Closed),
            };
            let Some(count) = count else { return Happened::Broken(Broken::Closed) };
            self.lines.take(count);
        }
    }

    /// The reply in the line that was read last, given the tokens in hand.
    ///
    /// # Errors
    /// Why it is not understood.
    pub(super) fn reply(&self, tokens: impl Iterator<Item = u64> + Clone) -> Result<Reply, String> {
        match self.stdout.current().trim_ascii() {
            [] => Ok(Reply::Nothing),
            line => reply::read(line, tokens),
        }
    }

    /// It has answered, and so it works.
    pub(super) fn has_answered(&mut self) {
        self.had_answered = true;
    }

    /// A remaining line from a process that is gone since `end`, or about to be; `None` if there is
    /// no more, or if it comes too late: the children of the process may keep writing.
    pub(super) async fn last_answer(&mut self, end: Instant) -> Option<Happened> {
        if end.elapsed() > LAST_ANSWER {
            return None;
        }
        match timeout_at(end + LAST_ANSWER, self.stdout.next()).await {
            Ok(line) => Some(happened(line)),
            Err(_) => None,
        }
    }

    /// Ends a process that has events in hand, waits until it and its children are gone, and
    /// classifies the end. The line of the oldest event begins at `begins`; `is_one` if it is the
    /// only one.
    pub(super) async fn bury(mut self, broken: Broken, begins: u64, is_one: bool) -> End {
        let status = self.end(&broken).await;
        let (read, had_answered) = (self.may_have_read(), self.had_answered);
        self.group.end(END_GRACE).await;
        // If it has read its only event in hand, it is no recycle: restarted without a count, it
        // could repeat that for ever, and the event with it. With several events it may have read
        // ahead.
        let is_free = had_answered && (read <= begins || !is_one);
        let how = how(status, broken, is_free, self.stderr).await;
        End { how, read, had_answered }
    }

    /// Like [`bury`](Self::bury), for a process that has nothing in hand. Its children are ended in
    /// the background.
    pub(super) async fn bury_idle(mut self, broken: Broken) -> How {
        let status = self.end(&broken).await;
        self.group.end_in_background(END_GRACE);
        how(status, broken, true, self.stderr).await
    }

    /// Waits until the process is gone: by itself, or because it is made to.
    async fn end(&mut self, broken: &Broken) -> Option<ExitStatus> {
        let status = match broken {
            // Its stdin stays open, so that unread bytes are still there to be counted after its
            // end.
            Broken::Closed => {
                timeout(EXIT_GRACE, self.child.wait()).await.ok().and_then(Result::ok)
            }
            Broken::Misbehaved(_) => None,
        };
        if status.is_none() {
            self.terminate().await;
        }
        status
    }

    /// Ends a process that is late with its answer, waits until it and its children are gone, and
    /// returns how many bytes it may have read, whether it had answered before, and its last
    /// output.
    pub(super) async fn give_up(mut self) -> (u64, bool, String) {
        self.terminate().await;
        let (read, had_answered) = (self.may_have_read(), self.had_answered);
        self.group.end(END_GRACE).await;
        (read, had_answered, last_words(self.stderr).await)
    }

    /// Closes the process's stdin, which asks it to finish, and waits for its exit; then ends its
    /// children. Processes that remain after `patience` are killed.
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

    /// Waits until the process is gone. If it still writes heartbeats while it finishes, it must
    /// not wait for a full pipe.
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

    /// How many of the written bytes the process may have read: all except those still in its pipe.
    /// Checked once it is gone, because it could read on before.
    fn may_have_read(&self) -> u64 {
        let unread = self.stdin.as_ref().and_then(unread);
        self.written().saturating_sub(unread.unwrap_or(0))
    }
}

/// The meaning of a process's end; `is_free` if code 0 may be a recycle.
async fn how(
    status: Option<ExitStatus>,
    broken: Broken,
    is_free: bool,
    stderr: Option<Stderr>,
) -> How {
    match (status, broken) {
        (Some(status), _) if status.success() && is_free => How::Recycled,
        (Some(status), _) => {
            How::Crashed(format!("it ended with {status}{}", last_words(stderr).await))
        }
        (None, Broken::Misbehaved(why)) => How::Crashed(why),
        (None, Broken::Closed) => {
            let words = last_words(stderr).await;
            How::Crashed(format!("it closed its stdin or stdout but did not exit{words}"))
        }
    }
}

/// How many bytes are in a pipe, on systems that show it.
fn unread(pipe: &ChildStdin) -> Option<u64> {
    rustix::io::ioctl_fionread(pipe).ok()
}

/// Writes some of it; none where the process has closed the pipe.
async fn write(stdin: &mut Option<ChildStdin>, lines: &[u8]) -> Option<usize> {
    let count = stdin.as_mut()?.write(lines).await.ok()?;
    (count > 0).then_some(count)
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
        .envs(config.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(directory) = &config.cwd {
        command.current_dir(directory);
    }
    command.process_group(0);
    Ok(command)
}

/// The result of a look for the next line.
fn happened(line: io::Result<NextLine>) -> Happened {
    match line {
        Ok(NextLine::Whole) => Happened::Line,
        Ok(NextLine::TooLong) => {
            let why = format!("it wrote a line of more than {LONGEST_ANSWER} bytes to its stdout");
            Happened::Broken(Broken::Misbehaved(why))
        }
        Ok(NextLine::End) | Err(_) => Happened::Broken(Broken::Closed),
    }
}

/// Reads and forgets, for ever: a process that still writes heartbeats while it finishes must
/// not wait for a full pipe.
async fn read_to_nowhere(stdout: &mut LineReader<ChildStdout>) {
    while matches!(stdout.next().await, Ok(NextLine::Whole)) {}
    std::future::pending().await
}
