//! A server that one test alone has, since it stops it.

use std::{
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::server::address;

/// A server on a port of its own, which is removed in the end.
pub(crate) struct Server {
    port: u16,
}

impl Server {
    /// `None` where these tests have no server.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::start_with(test, "")
    }

    /// One with these lines in its configuration.
    pub(crate) fn start_with(test: &str, config: &str) -> Option<Self> {
        address(test)?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Self { port };
        server.script_with("up", config);
        Some(server)
    }

    pub(crate) fn script(&self, command: &str) {
        self.script_with(command, "");
    }

    pub(crate) fn script_with(&self, command: &str, config: &str) {
        let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../scripts/nats"].iter().collect();
        let mut script = Command::new(path);
        // Nobody waits for the output of a server that goes on.
        script.env("GREENROOM_NATS_CONFIG", config);
        script.args([command, &self.port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(script.status().unwrap().success(), "scripts/nats {command} {}", self.port);
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
