//! What connectors and the engine promise, seen from outside, most of it on virtual time.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod connectors;
mod engine;
mod messages;
