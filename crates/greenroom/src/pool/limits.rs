//! Limits of a pool: how many messages per second, and how many at once.
//!
//! | limit | bounds | for |
//! |---|---|---|
//! | [`TokenBucket`] | messages started per second, with a burst | a contract: "no more than 50 requests a second" |
//! | [`AdaptiveLimit`] | messages in hand at once | a service with an unknown or changing capacity |
//!
//! Each is a state machine without clock, task or lock. Its owner passes the time, counted from a
//! moment of the owner's choice. A pool with [`rate`](crate::PoolBuilder::rate),
//! [`concurrency`](crate::PoolBuilder::concurrency) or [`adaptive`](crate::PoolBuilder::adaptive)
//! asks its own before a worker takes a message: a worker that has to wait holds no shard and no
//! key, and one worker at a time waits for the next token.

mod adaptive;
mod baseline;
mod failures;
mod gate;
mod gradient;
mod probe;
mod rate;
mod report;
mod settings;
mod window;

pub use adaptive::AdaptiveLimit;
pub use gate::LimitStats;
pub(crate) use gate::{AtOnce, Gate, Pass};
pub use rate::{Rate, TokenBucket};
pub use report::{LimitChange, LimitReason};
pub use settings::{Adaptive, Mode};
pub use window::Outcome;

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod simulation;
