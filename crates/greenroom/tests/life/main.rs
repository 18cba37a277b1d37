//! The life of actors and workers: hooks, exits, stops (A10, A11, A13), links and monitors (A12), restarts (P17 to P21).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hooks;
mod lifecycle;
mod links;
mod links_of_many;
mod probe;
mod ready;
mod restarts;
mod table;
