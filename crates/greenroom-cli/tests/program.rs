//! The program as a user meets it: real files, real processes, real servers, and what it prints.

#![expect(clippy::unwrap_used, reason = "a test whose stage cannot be set has failed")]

mod command_line;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "redis")]
mod redis;
mod run;
