//! Messages through an engine: what they carry, how they are read, layered and handled in
//! batches. In virtual time.

#![expect(clippy::unwrap_used, reason = "all of this is tests, the parts that they share included")]

mod batches;
mod data;
mod layers;
mod manual;
mod random_layers;
#[path = "../engine/support/mod.rs"]
#[expect(dead_code, reason = "the engine's own tests use all of it")]
mod support;
