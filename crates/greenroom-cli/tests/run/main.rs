//! `greenroom run` as a user meets it: real files, real processes, a real server,
//! and a report that adds up.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

mod admin;
mod advise;
mod bad_events;
mod bounds;
mod checkpoint;
mod conditions;
mod configuration;
mod daemon;
mod dashboard;
mod dead_letters;
mod dry_run;
mod examples;
mod faketime;
mod file_sets;
mod files;
mod follow;
mod http_input;
mod http_outputs;
mod inheritance;
mod kept;
mod layers;
mod limits;
mod log_scenarios;
mod metrics;
mod order;
mod pipelines;
mod pools;
mod posts;
mod processes;
mod records;
mod reload;
mod rotation;
mod routing;
mod scenarios;
mod scrape;
mod sdk;
mod send;
mod server;
mod signals;
mod small_disk;
mod stage;
mod standard_output;
mod status_map;
mod stores;
mod targets;
mod top;
mod why;
