//! The program as a user meets it: real files, real processes, real servers, and what it prints.

#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

mod command_line;
#[cfg(all(unix, feature = "kafka"))]
mod kafka;
#[cfg(all(unix, feature = "nats"))]
mod nats;
#[cfg(all(unix, feature = "otlp"))]
mod otlp;
#[cfg(all(unix, feature = "redis"))]
mod redis;
#[cfg(unix)]
mod run;
