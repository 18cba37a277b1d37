//! Queues of messages, their bounds, and the workers that are woken for them: internal to
//! `greenroom`.
//!
//! Nothing here knows an actor, a delivery or a reply. `greenroom` requires this crate by its exact
//! version, and none of these types is in a public signature of it: there is no promise of
//! stability.

#![expect(missing_docs, reason = "moved only; documented next")]

pub mod backlog;
pub mod block_queue;
pub mod credit_map;
pub mod discard;
pub mod entry;
pub mod key_lines;
pub mod lanes;
pub mod lock;
pub mod offer;
pub mod padded;
pub mod payload;
pub mod per_slot;
pub mod permits;
pub mod places;
pub mod queue;
pub mod shard;
pub mod slot;
pub mod stamp;
pub mod sync;
pub mod urgency;
pub mod visits;
pub mod wake;
pub mod watchdog;
pub mod watchdog_handle;
