//! The targets. Each is a test; `GREENROOM_FUZZ_SECONDS` says how long it runs.

mod answers;
mod checkpoints;
mod commit_sets;
mod configuration;
mod durable_log;
mod events;
mod files;
mod http;
mod posts;
mod records;
mod routing;
mod seeds;
mod units;
