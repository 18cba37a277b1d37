//! `greenroom run` with a real Kafka broker: topics in and out, a reload, a kill, a dry run, and
//! what goes wrong. Without a broker it says so, and how to have one.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

#[path = "../run/daemon.rs"]
#[expect(dead_code, reason = "shared with the tests without a broker")]
mod daemon;
mod dry_run;
mod errors;
#[path = "../run/faketime.rs"]
mod faketime;
mod flow;
mod letters;
mod metrics;
#[path = "../run/order.rs"]
mod order;
mod reload;
#[path = "../brokers/scenarios.rs"]
mod scenarios;
#[path = "../run/scrape.rs"]
#[expect(dead_code, reason = "shared with the tests without a broker")]
mod scrape;
mod secure;
#[path = "../run/server.rs"]
#[expect(dead_code, reason = "shared with the tests without a broker")]
mod server;
#[path = "../run/stage.rs"]
#[expect(dead_code, reason = "shared with the tests without a broker")]
mod stage;
mod topics;

pub(crate) use topics::filled;
