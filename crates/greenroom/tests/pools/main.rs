//! Pools: what each promises, which worker handles a message, what bounds the messages that it
//! takes, and how it changes while it works.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adopting;
mod bytes;
mod capacity;
mod classes;
mod dispatch;
mod inspect;
mod layers;
mod limits;
mod outcomes;
mod overflow;
mod owned_permits;
mod promises;
mod resizing;
mod retry_storms;
#[path = "../shared/room.rs"]
mod room;
mod runtimes;
mod scripted;
mod sends;
mod service;
mod settle;
mod sink;
mod sleeper;
mod stats;
mod threads;
mod withdraw;
