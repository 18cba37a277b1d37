//! A program that takes part: started, asked line by line, and killed where it does not answer.

use std::{
    ffi::OsString,
    fmt,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use crate::protocol::{self, Answer, Offer};

/// A program whose input has ended has this long to end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// Of a line that makes no sense, this much is shown.
const SHOWN: usize = 120;

/// How a program is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The folder that it was built from.
    pub name: &'static str,
    /// Of its systems, where they do not say.
    pub language: &'static str,
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// Why a program is of no use any more.
#[derive(Debug)]
pub enum Broken {
    NotStarted(String),
    Died(String),
    Silent(Duration),
    Garbage { line: String, why: String },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(why) => write!(f, "cannot be started: {why}"),
            Self::Died(how) => write!(f, "died ({how})"),
            Self::Silent(wait) => write!(f, "killed: no answer within {} s", wait.as_secs_f64()),
            Self::Garbage { line, why } => write!(f, "killed: answered {line:?} ({why})"),
        }
    }
}

pub struct Contestant {
    child: Child,
    /// `None` once it should end.
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    deadline: Duration,
}

impl Contestant {
    /// Starts it, and waits for what it offers.
    ///
    /// # Errors
    /// When it says nothing that makes sense within the deadline. It is killed then.
    pub fn start(launch: &Launch, deadline: Duration) -> Result<(Self, Offer), Broken> {
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).stdin(Stdio::piped());
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| {
            Broken::NotStarted(format!("{}: {error}", launch.program.display()))
        })?;
        if let Some(errors) = child.stderr.take() {
            pass_on(launch.name, errors);
        }
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let lines = output.map_or_else(|| mpsc::channel().1, read);
        let mut contestant = Self { child, input, lines, deadline };
        let line = contestant.line()?;
        let offer = protocol::offer(&line, launch.language)
            .map_err(|why| contestant.garbage(&line, why))?;
        Ok((contestant, offer))
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// One repetition.
    ///
    /// # Errors
    /// When it died, or was killed. That the repetition failed is an answer.
    pub fn ask(&mut self, system: &str, row: &str, messages: u64) -> Result<Answer, Broken> {
        if let Some(input) = &mut self.input {
            // Where it has died, there is no line either.
            let _ = input.write_all(protocol::request(system, row, messages).as_bytes());
        }
        let line = self.line()?;
        protocol::answer(&line).map_err(|why| self.garbage(&line, why))
    }

    fn line(&mut self) -> Result<String, Broken> {
        match self.lines.recv_timeout(self.deadline) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Disconnected) => Err(Broken::Died(self.status())),
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                Err(Broken::Silent(self.deadline))
            }
        }
    }

    fn garbage(&mut self, line: &str, why: String) -> Broken {
        self.kill();
        Broken::Garbage { line: line.chars().take(SHOWN).collect(), why }
    }

    /// How it ended. A program that closes its output and goes on is ended.
    fn status(&mut self) -> String {
        self.end();
        self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Ends its input, and it where that is not enough.
    fn end(&mut self) {
        self.input = None;
        let since = Instant::now();
        while since.elapsed() < ENDS_WITHIN {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(LOOK),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        self.kill();
    }

    fn kill(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Contestant {
    fn drop(&mut self) {
        self.end();
    }
}

/// Its lines, read by a thread so that waiting for one can end. The thread ends with the output.
fn read(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

/// What a person should read, with the program's name before it.
fn pass_on(name: &'static str, errors: impl Read + Send + 'static) {
    thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            eprintln!("[{name}] {line}");
        }
    });
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const OFFER: &str =
        r#"echo '{"systems": [{"name": "fake", "version": "1", "rows": ["A4"]}]}'; "#;

    /// A contestant that is a shell script.
    pub fn script(script: &str) -> Launch {
        let args = ["-c", script].map(OsString::from).to_vec();
        Launch { name: "fake", language: "sh", program: "/bin/sh".into(), args }
    }

    fn start(after_offer: &str, deadline: Duration) -> Contestant {
        Contestant::start(&script(&format!("{OFFER}{after_offer}")), deadline).unwrap().0
    }

    const SOON: Duration = Duration::from_millis(300);
    const LATE: Duration = Duration::from_secs(60);

    #[test]
    fn it_says_what_it_offers_and_answers() {
        let cases = r#"*'"A4"'*) echo '{"value": 2.5}';; *) echo '{"error": "lost 1"}';;"#;
        let replies = format!(r#"while read line; do case "$line" in {cases} esac; done"#);
        let launch = script(&format!("{OFFER}{replies}"));
        let (mut fake, offer) = Contestant::start(&launch, LATE).unwrap();
        assert_eq!(offer.systems[0].rows, ["A4"]);
        assert_eq!(offer.systems[0].language, "sh");
        assert_eq!(fake.ask("fake", "A4", 5).unwrap(), Answer::Value(2.5));
        assert_eq!(fake.ask("fake", "D1", 5).unwrap(), Answer::Error("lost 1".to_owned()));
    }

    #[test]
    fn it_dies_before_or_after_it_was_asked() {
        let before = Contestant::start(&script("exit 3"), LATE).err().unwrap();
        assert_eq!(before.to_string(), "died (exit status: 3)");
        let after = start("read line; exit 4", LATE).ask("fake", "A4", 5).unwrap_err();
        assert_eq!(after.to_string(), "died (exit status: 4)");
    }

    #[test]
    fn it_hangs_and_is_killed() {
        let mut fake = start("exec sleep 60", SOON);
        let (id, since) = (fake.id(), Instant::now());
        let broken = fake.ask("fake", "A4", 5).unwrap_err();
        assert_eq!(broken.to_string(), "killed: no answer within 0.3 s");
        assert!(since.elapsed() < Duration::from_secs(30));
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn it_says_what_makes_no_sense_and_is_killed() {
        let broken = start("read line; echo 2.81 M/s; read line", LATE).ask("fake", "A4", 5);
        assert!(broken.unwrap_err().to_string().starts_with("killed: answered \"2.81 M/s\""));
        let broken = Contestant::start(&script("echo hello; read line"), LATE).err().unwrap();
        assert!(broken.to_string().starts_with("killed: answered \"hello\""), "{broken}");
    }

    #[test]
    fn it_cannot_be_started_where_it_does_not_exist() {
        let launch = Launch { program: "/nowhere/none".into(), ..script("") };
        let broken = Contestant::start(&launch, LATE).err().unwrap();
        assert!(broken.to_string().starts_with("cannot be started: /nowhere/none"), "{broken}");
    }
}
