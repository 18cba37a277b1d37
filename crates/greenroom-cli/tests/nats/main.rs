//! `greenroom run` with a real NATS server: streams in, a reload, a kill, a dry run, and what goes
//! wrong. Without a server it says so, and how to have one.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

#[path = "../run/daemon.rs"]
#[expect(dead_code, reason = "shared with the tests without a server")]
mod daemon;
mod errors;
#[path = "../run/faketime.rs"]
mod faketime;
mod flow;
mod letters;
#[path = "../run/order.rs"]
mod order;
mod reload;
#[path = "../brokers/scenarios.rs"]
mod scenarios;
#[path = "../run/server.rs"]
#[expect(dead_code, reason = "shared with the tests without a server")]
mod server;
#[path = "../run/stage.rs"]
#[expect(dead_code, reason = "shared with the tests without a server")]
mod stage;
mod streams;

pub(crate) use streams::filled;
