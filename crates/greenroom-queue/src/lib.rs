//! Message queues, their bounds, and the waking of idle workers: internal to `greenroom`.
//!
//! Nothing here knows about actors, deliveries or replies. A [`Payload`](payload::Payload) names
//! the parts of a message, an [`Exchange`](handoff::Exchange) passes through a handoff slot, and
//! the caller gets the outcome of each step. Atomics, locks and tokio's types come through
//! [`sync`], so that model checkers can compile the same files with their own.
//!
//! `greenroom` requires this crate by its exact version, and has none of these types in a public
//! signature: there is no promise of stability.

#![expect(
    clippy::len_without_is_empty,
    clippy::new_without_default,
    reason = "one crate uses these types, and asks them for no more"
)]

pub mod backlog;
pub mod block_queue;
pub mod coarse;
pub mod credit_map;
pub mod deque;
pub mod discard;
pub mod entry;
pub mod handoff;
pub mod key_lines;
pub mod lanes;
pub mod lock;
pub mod offer;
pub mod pacing;
pub mod padded;
pub mod payload;
pub mod per_slot;
pub mod permits;
pub mod places;
pub mod queue;
pub mod shard;
pub mod shares;
pub mod slot;
pub mod stamp;
pub mod sync;
pub mod urgency;
pub mod visits;
pub mod wake;
pub mod watchdog;
pub mod watchdog_handle;
