//! Random programs on virtual time with keyed pools. Whatever handlers, senders, operators,
//! managers and stops do: the messages of a key are handled one (or one batch) at a time and in the
//! order of their acceptance, failed messages come before later ones, no key has more waiting
//! messages than it may, every message has one outcome, every call is resolved, and nothing is left
//! behind.
//!
//! Each program comes from a seed, which is printed with it if it fails. `GREENROOM_PROGRAMS` sets
//! the number of programs, `GREENROOM_SEED` the first seed.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod actors;
mod model;
mod program;
mod run;
mod work;
