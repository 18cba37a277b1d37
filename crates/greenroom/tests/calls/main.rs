//! How calls end (A06, A08, A09), and what forwarding keeps (A07).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod deadlocks;
mod desk;
mod ends;
mod forwarding;
mod replies;
