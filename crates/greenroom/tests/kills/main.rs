//! Workers that are killed: awake, computing, suspended, lying idle, served in place, handed a message.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clerk;
mod outcomes;
mod soak;
mod spinning;
