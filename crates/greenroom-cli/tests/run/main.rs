//! `greenroom run` as a user meets it: real files, real processes, a real server, and a report that adds up.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

mod bad_events;
mod configuration;
mod examples;
mod order;
mod pipelines;
mod pools;
mod processes;
mod routing;
mod server;
mod signals;
mod stage;
mod stores;
mod targets;
