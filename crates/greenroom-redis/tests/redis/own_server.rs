//! A server that one test alone has, since it stops it.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU16, Ordering},
};

use crate::server::address;

const FIRST_PORT: u16 = 22_000;
const PORTS: u32 = 4_000;

/// A server on a port of its own, which is removed in the end.
pub(crate) struct Server {
    port: u16,
}

impl Server {
    /// `None` where these tests have no server.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::start_with(test, |_| String::new())
    }

    /// One with the lines in its configuration that are made for another free port.
    pub(crate) fn start_with(test: &str, config: impl Fn(u16) -> String) -> Option<Self> {
        address(test)?;
        let server = Self { port: free_port() };
        server.script_with("up", &config(free_port()));
        Some(server)
    }

    pub(crate) fn script(&self, command: &str) {
        self.script_with(command, "");
    }

    fn script_with(&self, command: &str, config: &str) {
        let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../scripts/redis"].iter().collect();
        let mut script = Command::new(path);
        // Nobody waits for the output of a server that goes on.
        script.env("GREENROOM_REDIS_CONFIG", config);
        script.args([command, &self.port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(script.status().unwrap().success(), "scripts/redis {command} {}", self.port);
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.script("clean");
    }
}

/// One below those that the system gives to outgoing connections: while a server is down, any of
/// the other tests would be given its port.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Other runs of these tests begin elsewhere.
    let first = std::process::id() % PORTS;
    let free = (0..PORTS).find_map(|_| {
        let next = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST_PORT + ((first + next) % PORTS) as u16;
        TcpListener::bind(("127.0.0.1", port)).ok().map(|_| port)
    });
    free.expect("a free port")
}
