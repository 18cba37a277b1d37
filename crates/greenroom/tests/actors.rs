//! What actors, calls and controllers promise, and whether each promise has a test. What becomes of
//! messages is in `queues`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod calls;
mod control;
mod events;
mod life;
mod statements;
