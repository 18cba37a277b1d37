//! What the library promises, seen from outside. `random` has the programs that nobody has thought
//! of.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod calls;
mod control;
mod events;
mod keys;
mod life;
mod pools;
mod sending;
mod shared;
mod statements;
