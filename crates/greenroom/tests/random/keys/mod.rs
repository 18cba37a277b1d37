//! Random programs on virtual time over pools with keys: whatever handlers, senders, operators,
//! managers and stops do, the messages of a key are handled one (or one batch) at a time and in the
//! order of their acceptance, what has failed comes before what came later, no key has more waiting
//! than it may, every message has one outcome, every call is resolved, and nothing is left behind.
//!
//! Each program comes from a seed, which is printed with it where it fails. `GREENROOM_PROGRAMS`
//! says how many, `GREENROOM_SEED` from which seed on.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod actors;
mod model;
mod program;
mod run;
mod work;
