//! One side, in a process and a group of its own.

use std::{
    process::{Command, ExitCode},
    time::Duration,
};

use crate::{
    Failure, engine,
    loops::{self, Does},
    peer::Peer,
    run::Run,
};

/// What is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A loop that polls and does nothing with it.
    Poll,
    /// A loop that makes an event of each record.
    Copy,
    /// The same, and commits.
    Commit,
    /// The engine.
    Greenroom,
    /// Confluent's parallel-consumer.
    Peer,
}

impl Side {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Copy => "copy",
            Self::Commit => "commit",
            Self::Greenroom => "greenroom",
            Self::Peer => "parallel-consumer",
        }
    }

    pub const fn about(self) -> &'static str {
        match self {
            Self::Poll => "bare poll loop",
            Self::Copy => "loop that copies into events",
            Self::Commit => "loop that copies and commits",
            Self::Greenroom => "greenroom",
            Self::Peer => "parallel-consumer, KEY",
        }
    }
}

/// What a side is to do.
#[derive(Debug, Clone)]
pub struct Task {
    pub broker: String,
    pub topic: String,
    pub group: String,
    pub events: u64,
    pub warm_up: u64,
    pub workers: usize,
    pub work: Duration,
    /// Between two commits.
    pub commits: Duration,
}

impl Task {
    /// In the order in which the parallel-consumer's program has them too.
    pub fn args(&self) -> [String; 8] {
        [
            self.broker.clone(),
            self.topic.clone(),
            self.group.clone(),
            self.events.to_string(),
            self.warm_up.to_string(),
            self.workers.to_string(),
            self.work.as_millis().to_string(),
            self.commits.as_millis().to_string(),
        ]
    }

    fn read(args: &[&str]) -> Result<Self, Failure> {
        let [broker, topic, group, events, warm_up, workers, work, commits] = args else {
            return Err(format!("a side needs eight arguments: {args:?}").into());
        };
        Ok(Self {
            broker: (*broker).to_owned(),
            topic: (*topic).to_owned(),
            group: (*group).to_owned(),
            events: events.parse()?,
            warm_up: warm_up.parse()?,
            workers: workers.parse()?,
            work: Duration::from_millis(work.parse()?),
            commits: Duration::from_millis(commits.parse()?),
        })
    }
}

/// Runs a side in a process.
pub fn measured(side: Side, task: &Task, peer: Option<&Peer>) -> Result<Run, Failure> {
    let mut command = match (side, peer) {
        (Side::Peer, Some(peer)) => peer.command(),
        _ => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["side", side.name()]);
            command
        }
    };
    let ran = command.args(task.args()).output()?;
    let said = String::from_utf8_lossy(&ran.stderr);
    let printed = String::from_utf8(ran.stdout)?;
    let failed = |why: &str| format!("{}: {why}; it said: {said}", side.name());
    if !ran.status.success() {
        return Err(failed("it failed").into());
    }
    Run::read(&printed).map_err(|why| failed(&why.to_string()).into())
}

/// Runs a side here, and prints what it came to.
pub fn run(args: &[&str]) -> Result<ExitCode, Failure> {
    let [name, args @ ..] = args else { return Err("which side?".into()) };
    let task = Task::read(args)?;
    let run = match *name {
        "poll" => loops::run(&task, Does::Nothing)?,
        "copy" => loops::run(&task, Does::Copies)?,
        "commit" => loops::run(&task, Does::Commits)?,
        "greenroom" => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(engine::run(task))?
        }
        other => return Err(format!("there is no side {other}").into()),
    };
    println!("{run}");
    Ok(ExitCode::SUCCESS)
}
