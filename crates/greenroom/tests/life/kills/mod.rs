//! Workers that are killed: awake, computing, suspended, idle, or with a handed-over message.

#![expect(clippy::print_stdout, reason = "a soak says what came of it")]

mod clerk;
mod outcomes;
mod soak;
mod spinning;
