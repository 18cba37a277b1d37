//! The targets. Each is a test; `GREENROOM_FUZZ_SECONDS` says how long it runs.

mod answers;
mod checkpoints;
mod configuration;
mod events;
mod files;
mod http;
mod records;
mod routing;
mod seeds;
mod units;
