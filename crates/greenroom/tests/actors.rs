//! The promises about actors, calls and controllers, and a check that each promise has a test. For
//! the outcomes of messages see `queues`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod calls;
mod control;
mod events;
mod life;
mod statements;
