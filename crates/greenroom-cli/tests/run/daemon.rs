//! A greenroom that runs with an admin listener, and is asked over HTTP.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::run::stage::{Run, Stage, end};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A run whose log goes to the file `log`. Ends with the test, whatever becomes of it.
pub(crate) struct Daemon<'a> {
    stage: &'a Stage,
    child: Option<Child>,
    /// Where its listener is.
    pub(crate) address: String,
    started: Instant,
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl<'a> Daemon<'a> {
    /// Starts `greenroom run greenroom.yaml`, which says `admin: { listen: 127.0.0.1:0 }`,
    /// and waits for its listener.
    pub(crate) fn start(stage: &'a Stage) -> Self {
        Self::start_with(stage, |_| {})
    }

    /// As [`start`](Self::start), with more that the command is to have.
    pub(crate) fn start_with(stage: &'a Stage, with: impl FnOnce(&mut Command)) -> Self {
        let started = Instant::now();
        let mut command = stage.command("run greenroom.yaml --report json");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(stage.path("log")).unwrap());
        with(&mut command);
        let child = Some(command.spawn().unwrap());
        let mut daemon = Self { stage, child, address: String::new(), started };
        daemon.address = wait(|| {
            let log = daemon.log();
            let (_, rest) = log.split_once("the admin listener is open")?;
            let (_, address) = rest.split_once("address=")?;
            Some(address.split_whitespace().next()?.to_owned())
        });
        daemon
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.stage.path("log")).unwrap_or_default()
    }

    /// The status and the JSON of an answer.
    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, &format!("Host: {}\r\n", self.address))
    }

    pub(crate) fn post(&self, path: &str) -> (u16, Value) {
        self.ask("POST", path, &format!("Host: {}\r\n", self.address))
    }

    /// With headers of the test's own, each with its line end.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("{method} {path} HTTP/1.0\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    /// Asks again until an answer is as wanted, and returns it.
    pub(crate) fn wait_for(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait(|| Some(self.get(path).1).filter(&wanted))
    }

    /// Decides about the event that parks a key.
    pub(crate) fn decide(&self, decision: &str, key: &str) -> (u16, Value) {
        let shown = self.get(&format!("/api/keys?key={key}")).1;
        let event = shown["lines"][0]["event"]["id"].as_str().unwrap_or_default();
        self.post(&format!("/api/keys/{decision}?key={key}&event={event}"))
    }

    /// What `greenroom why KEY` says of it.
    pub(crate) fn why(&self, key: &str) -> Output {
        self.stage.command("why").args([key, &self.address]).output().unwrap()
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(mut self) -> Run {
        Run::of(end(self.child.take().unwrap()), self.started)
    }

    /// Ends it by two signals, and returns what it came to.
    pub(crate) fn stop(mut self) -> Run {
        self.signal(Signal::INT);
        wait(|| self.log().contains("draining").then_some(()));
        self.signal(Signal::INT);
        Run::of(end(self.child.take().unwrap()), self.started)
    }
}

/// Tries again until there is something.
pub(crate) fn wait<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let late = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < late, "what was waited for did not come");
        thread::sleep(Duration::from_millis(10));
    }
}
