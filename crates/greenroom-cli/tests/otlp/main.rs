//! `greenroom run` with `telemetry.otlp`, and a receiver that reads what it sends.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

#[path = "../run/daemon.rs"]
#[expect(dead_code, reason = "shared with the tests without a receiver")]
mod daemon;
mod endpoint;
mod receiver;
#[path = "../run/server.rs"]
#[expect(dead_code, reason = "shared with the tests without a receiver")]
mod server;
mod signals;
#[path = "../run/stage.rs"]
#[expect(dead_code, reason = "shared with the tests without a receiver")]
mod stage;
mod traces;
