//! Pools: what each promises, which worker handles a message, what becomes of it, and how a pool
//! changes while it works.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopting;
mod dispatch;
mod inspect;
mod kept;
mod layers;
mod outcomes;
mod promises;
mod resizing;
mod retry_storms;
#[path = "../shared/room.rs"]
mod room;
mod runtimes;
mod scripted;
mod sleeper;
mod stats;
mod threads;
