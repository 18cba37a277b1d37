//! What is sent to a pool: how much it takes, in which order and how soon, what becomes of the
//! rest, permits, services and sinks, and what is withdrawn again.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;
mod capacity;
mod classes;
mod limits;
mod overflow;
mod owned_permits;
#[path = "../shared/room.rs"]
mod room;
mod sends;
mod service;
mod settle;
mod sink;
mod withdraw;
