//! `greenroom run` with a real NATS server: streams in, a reload, a kill, a dry run, and what goes
//! wrong. Without a server it says so, and how to have one.

mod errors;
mod flow;
mod letters;
mod reload;
#[path = "../brokers/scenarios.rs"]
#[cfg_attr(
    all(feature = "kafka", feature = "nats"),
    expect(clippy::duplicate_mod, reason = "each broker fills an input of its own")
)]
mod scenarios;
mod streams;

use crate::run::{daemon, faketime, order, server, stage};
pub(crate) use streams::filled;
