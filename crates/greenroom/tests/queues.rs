//! What becomes of messages that are sent to a pool, with and without keys. Two binaries share the
//! library's tests, because each of their actors is a further copy of all of a pool's code: one
//! compiler for all of them would need 7 GB.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod keys;
mod pools;
mod sending;
mod shared;
mod shares;
