//! Consumers in processes of their own: this very program, started again with what it is to do in
//! its environment.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use greenroom_bus::{
    engine::{Engine, HandlerConfig, InputConfig, PoolConfig},
    event::Event,
    handler::{Attempt, Handler, HandlerFactory, Handling, Outputs},
};
use greenroom_kafka::{kinds::KafkaProtocol, source::KafkaSource};

use super::support::{NoLetters, options, real_broker};

/// What such a process is to do, as `NAME=VALUE` pairs in its environment.
const TASK: &str = "GREENROOM_KAFKA_TASK";

/// What a consumer is to do.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) topic: String,
    pub(crate) group: String,
    /// The id of an event that is never done.
    pub(crate) stuck: String,
    pub(crate) remembers: bool,
    /// What each event takes.
    pub(crate) latency: Duration,
    pub(crate) workers: usize,
    pub(crate) protocol: String,
}

impl Task {
    fn write(&self) -> String {
        let Self { topic, group, stuck, remembers, latency, workers, protocol } = self;
        format!("{topic} {group} {stuck} {remembers} {} {workers} {protocol}", latency.as_micros())
    }

    fn read(text: &str) -> Self {
        let mut parts = text.split(' ').map(str::to_owned);
        let mut next = || parts.next().unwrap();
        Self {
            topic: next(),
            group: next(),
            stuck: next(),
            remembers: next() == "true",
            latency: Duration::from_micros(next().parse().unwrap()),
            workers: next().parse().unwrap(),
            protocol: next(),
        }
    }
}

/// What a consumer has said.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) id: u64,
    pub(crate) key: String,
    /// When it was taken in hand and when it was done, by the machine's clock.
    pub(crate) from: u64,
    pub(crate) until: u64,
}

/// A consumer that runs.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    pub(crate) lines: mpsc::Receiver<Line>,
}

impl Process {
    pub(crate) fn start(task: &Task) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "broker::program::consumes_as_it_is_told", "--nocapture", "--quiet"])
            .env(TASK, task.write())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (tell, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let Some(line) = line.strip_prefix("done ") else { continue };
                let mut parts = line.split(' ');
                let mut number = || parts.next().and_then(|part| part.parse().ok());
                let (Some(id), Some(from), Some(until)) = (number(), number(), number()) else {
                    continue;
                };
                let Some(key) = parts.next() else { continue };
                let _ = tell.send(Line { id, key: key.to_owned(), from, until });
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines }
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) -> Vec<Line> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }

    /// Sends it this signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Asks it to drain. What it still says comes in the order in which it happens.
    pub(crate) fn asks_to_end(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has drained.
    pub(crate) fn ended(mut self) -> Vec<Line> {
        self.stdin = None;
        let lines = self.lines.iter().collect();
        assert!(self.child.wait().unwrap().success());
        lines
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended, or is to end now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Only where another test has started this process for it.
#[test]
fn consumes_as_it_is_told() {
    let Ok(task) = env::var(TASK) else { return };
    let task = Task::read(&task);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(consume(task));
}

async fn consume(task: Task) {
    let broker = real_broker().unwrap();
    let mut options = options(&broker, &task.group, std::slice::from_ref(&task.topic));
    options.remember_done = task.remembers;
    match &*task.protocol {
        "consumer" => {
            options.protocol = KafkaProtocol::Consumer;
            options.properties.unset("session.timeout.ms").unset("heartbeat.interval.ms");
        }
        strategy => _ = options.properties.set("partition.assignment.strategy", strategy),
    }
    let source = KafkaSource::open(options, None).unwrap();
    let on = vec!["**".parse().unwrap()];
    let pool = PoolConfig { workers: task.workers, ..PoolConfig::default() };
    let config = HandlerConfig {
        order_by: Some("subject".parse().unwrap()),
        ..HandlerConfig::new(on, Arc::new(Works(Arc::new(task))))
    };
    let engine = Engine::builder()
        .input_named("input", InputConfig::default(), Box::new(source))
        .pool("default", pool)
        .handler("all", config)
        .dead_letters(Arc::new(NoLetters))
        .deadline(Duration::from_secs(60))
        .build();
    let engine = engine.await.unwrap();
    let control = engine.control();
    thread::spawn(move || {
        // Until it is closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        control.drain();
    });
    let report = engine.run().await;
    assert!(report.adds_up(), "{report:?}");
}

#[derive(Clone)]
struct Works(Arc<Task>);

impl HandlerFactory for Works {
    fn build(&self, _worker: usize) -> Result<Box<dyn Handler>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Handler for Works {
    fn handle<'a>(&'a mut self, event: &'a Event, _attempt: &'a Attempt) -> Handling<'a> {
        Handling::Later(Box::pin(async move {
            let from = now();
            if event.id() == self.0.stuck {
                std::future::pending::<()>().await;
            }
            if !self.0.latency.is_zero() {
                tokio::time::sleep(self.0.latency).await;
            }
            let key = event.subject().map_or("-", |key| &**key);
            // In one piece, so that a kill leaves no half of a line.
            let line = format!("done {} {from} {} {key}\n", event.id(), now());
            let mut stdout = io::stdout().lock();
            stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).unwrap();
            Ok(Outputs::None)
        }))
    }
}

/// By the machine's clock, which all processes share.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_nanos() as u64
}
