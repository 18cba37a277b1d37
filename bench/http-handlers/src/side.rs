//! One side, in a process of its own, against a target in another.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, ExitCode, Stdio},
    time::Instant,
};

use measure::processor_time;

use crate::{Failure, engine, events::event, plain};

/// How the target answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    AtOnce,
    Later,
    SomeRefused,
}

impl Answers {
    pub const ALL: [Self; 3] = [Self::AtOnce, Self::Later, Self::SomeRefused];

    pub fn name(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::Later => "after 5 ms",
            Self::SomeRefused => "1% with 503",
        }
    }

    pub fn named(name: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|answers| answers.name() == name);
        found.ok_or_else(|| format!("there is no target that answers {name}").into())
    }
}

/// Who posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Plain,
    Engine,
    Ordered,
}

impl Side {
    pub const ALL: [Self; 3] = [Self::Plain, Self::Engine, Self::Ordered];

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain load generator",
            Self::Engine => "engine, any order",
            Self::Ordered => "engine, by subject",
        }
    }
}

/// What a process printed of one run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub seconds: f64,
    /// Processor time, the target's not counted.
    pub processor: f64,
    pub events: u64,
}

impl Run {
    pub fn rate(self) -> f64 {
        self.events as f64 / self.seconds
    }

    /// Processor time of each event, in microseconds.
    pub fn each(self) -> f64 {
        self.processor * 1e6 / self.events as f64
    }
}

/// A target that runs until this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Its standard input ends.
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

/// Runs a side against a target, both in processes of their own.
pub fn measured(side: Side, answers: Answers, events: u64) -> Result<Run, Failure> {
    let own = std::env::current_exe()?;
    let mut target = Command::new(&own);
    target.args(["target", answers.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut target = Running(target.spawn()?);
    let mut url = String::new();
    BufReader::new(target.0.stdout.take().ok_or("no output")?).read_line(&mut url)?;
    let mut command = Command::new(&own);
    let ran = command.args(["side", side.name(), url.trim()]).arg(events.to_string()).output()?;
    let text = String::from_utf8(ran.stdout)?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let [seconds, processor, events] = words.as_slice() else {
        return Err(format!("{}: {}", side.name(), String::from_utf8_lossy(&ran.stderr)).into());
    };
    Ok(Run { seconds: seconds.parse()?, processor: processor.parse()?, events: events.parse()? })
}

/// Runs a side here, and prints its seconds, its processor time and its events. What it posts is
/// made before.
pub fn run(name: &str, url: &str, events: u64) -> Result<ExitCode, Failure> {
    let side = Side::ALL.into_iter().find(|side| side.name() == name);
    let side = side.ok_or_else(|| format!("there is no side {name}"))?;
    let events = (0..events).map(event).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (start, before) = (Instant::now(), processor_time());
    let done = match side {
        Side::Plain => runtime.block_on(plain::run(url, events)),
        Side::Engine => runtime.block_on(engine::run(url, events, false)),
        Side::Ordered => runtime.block_on(engine::run(url, events, true)),
    }?;
    println!("{} {} {done}", start.elapsed().as_secs_f64(), processor_time() - before);
    Ok(ExitCode::SUCCESS)
}
