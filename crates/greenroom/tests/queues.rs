//! The outcomes of messages that are sent to a pool, with and without keys. Two binaries share the
//! library's tests, because each of their actors is another copy of all of a pool's code: compiling
//! all of them at once would take 7 GB.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod keys;
mod pools;
mod sending;
mod shared;
mod shares;
