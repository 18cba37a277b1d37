//! `greenroom run` with a real Kafka broker: topics in and out, a reload, a kill, a dry run, and
//! what goes wrong. Without a broker it says so, and how to have one.

mod dry_run;
mod errors;
mod flow;
mod letters;
mod metrics;
mod reload;
#[path = "../brokers/scenarios.rs"]
#[cfg_attr(
    all(feature = "kafka", feature = "nats"),
    expect(clippy::duplicate_mod, reason = "each broker fills an input of its own")
)]
mod scenarios;
mod secure;
mod topics;

use crate::run::{daemon, faketime, order, scrape, server, stage};
pub(crate) use topics::filled;
