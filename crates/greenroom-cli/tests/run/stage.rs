//! A directory, a configuration, and the binary run in it.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A run that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(120);

/// A directory of one test.
pub(crate) struct Stage {
    directory: TempDir,
}

/// What one run of the binary came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Stage {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A directory with this `greenroom.yaml` in it.
    pub(crate) fn with(config: &str) -> Self {
        let stage = Self::new();
        stage.write("greenroom.yaml", config);
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn write_events(&self, name: &str, events: &[Value]) {
        self.write(name, lines(events));
    }

    /// The lines of a file; none where there is no file. The one that is being written is left out.
    pub(crate) fn read(&self, name: &str) -> Vec<Value> {
        let text = fs::read(self.path(name)).unwrap_or_default();
        let whole =
            text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        whole.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// How many lines a file has, without the one that is being written.
    pub(crate) fn count_lines(&self, name: &str) -> usize {
        let text = fs::read(self.path(name)).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Runs `greenroom run greenroom.yaml --report json` to its end.
    pub(crate) fn run(&self) -> Run {
        self.run_with("", b"")
    }

    /// As [`run`](Self::run), with more words on the command line and something on standard input.
    pub(crate) fn run_with(&self, arguments: &str, input: &[u8]) -> Run {
        let started = Instant::now();
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // A program that does not read its input closes the pipe.
        let writer = thread::spawn(move || drop(stdin.write_all(&input)));
        let run = Run::of(end(child), started);
        writer.join().unwrap();
        run
    }

    /// Starts `greenroom run greenroom.yaml --report json` and more.
    pub(crate) fn start(&self, arguments: &str) -> Child {
        self.command(&format!("run greenroom.yaml --report json {arguments}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The binary with these arguments, in this directory.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(arguments.split_whitespace());
        command.current_dir(self.directory.path());
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
        command
    }
}

/// Waits for the end of a process, and kills it where it hangs.
pub(crate) fn end(child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, over) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if over.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
            kill_process(pid, Signal::KILL).unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watchdog.join().unwrap();
    output
}

impl Run {
    /// What a process came to. Whatever happened, the user sees no stack trace and no panic.
    pub(crate) fn of(output: Output, started: Instant) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let run = Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            took: started.elapsed(),
        };
        for trace in ["panicked", "stack backtrace", "RUST_BACKTRACE", "internal error"] {
            assert!(!run.stderr.contains(trace), "{run:?}");
        }
        run
    }

    /// The report. It adds up, and nothing left out of order, or the test fails.
    pub(crate) fn report(&self) -> Value {
        let report: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no report ({error}): {self:?}"));
        let count = |name: &str| report[name].as_u64().unwrap();
        let outcomes = ["handled", "dead_lettered", "ignored", "refused", "given_back"].map(count);
        assert_eq!(count("taken"), outcomes.iter().sum::<u64>(), "it does not add up: {report}");
        assert_eq!(count("out_of_order"), 0, "{report}");
        report
    }

    /// The report of a run that ended with this code and these counts of taken, handled,
    /// dead-lettered and refused.
    pub(crate) fn counted(&self, code: i32, counts: [u64; 4]) -> Value {
        assert_eq!(self.code, code, "{self:?}");
        let report = self.report();
        let found = ["taken", "handled", "dead_lettered", "refused"]
            .map(|name| report[name].as_u64().unwrap());
        assert_eq!(found, counts, "{report}\n{}", self.stderr);
        report
    }
}

/// A CloudEvent.
pub(crate) fn event(id: &str, ty: &str, subject: &str, data: Value) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "/test", "type": ty, "subject": subject, "data": data
    })
}

/// So many events of the type `test.happened`, over 37 subjects of which the first has a third.
pub(crate) fn events(count: usize) -> Vec<Value> {
    (0..count)
        .map(|n| {
            let subject = if n % 3 == 0 { 0 } else { n % 37 };
            event(&format!("e{n}"), "test.happened", &format!("s{subject}"), json!({"n": n}))
        })
        .collect()
}

/// One event a line.
pub(crate) fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}
