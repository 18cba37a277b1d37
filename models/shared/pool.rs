//! A pool: the product's files, and those that are played.

#[path = "../../crates/greenroom/src/pool/backlog.rs"]
pub(crate) mod backlog;
#[path = "../../crates/greenroom/src/pool/block_queue.rs"]
mod block_queue;
#[path = "core.rs"]
pub(crate) mod core;
#[path = "../../crates/greenroom/src/pool/counters.rs"]
pub(crate) mod counters;
#[path = "../../crates/greenroom/src/pool/credit_map.rs"]
pub(crate) mod credit_map;
#[path = "../../crates/greenroom/src/pool/discard.rs"]
pub(crate) mod discard;
#[path = "../../crates/greenroom/src/pool/entry.rs"]
pub(crate) mod entry;
#[path = "failed.rs"]
pub(crate) mod failed;
#[path = "../../crates/greenroom/src/pool/handoff_slot.rs"]
pub(crate) mod handoff_slot;
#[path = "in_flight.rs"]
pub(crate) mod in_flight;
#[path = "../../crates/greenroom/src/pool/in_place.rs"]
pub(crate) mod in_place;
#[path = "../../crates/greenroom/src/pool/key_lines.rs"]
pub(crate) mod key_lines;
#[path = "../../crates/greenroom/src/pool/lanes.rs"]
pub(crate) mod lanes;
#[path = "../../crates/greenroom/src/pool/mailbox.rs"]
pub(crate) mod mailbox;
#[path = "../../crates/greenroom/src/pool/offer.rs"]
pub(crate) mod offer;
#[path = "../../crates/greenroom/src/pool/outgoing.rs"]
pub(crate) mod outgoing;
#[path = "../../crates/greenroom/src/pool/padded.rs"]
mod padded;
#[path = "../../crates/greenroom/src/pool/payload.rs"]
pub(crate) mod payload;
#[path = "../../crates/greenroom/src/pool/per_slot.rs"]
mod per_slot;
#[path = "../../crates/greenroom/src/pool/permits.rs"]
pub(crate) mod permits;
#[path = "../../crates/greenroom/src/pool/places.rs"]
mod places;
#[path = "../../crates/greenroom/src/pool/pool_payload.rs"]
pub(crate) mod pool_payload;
#[path = "../../crates/greenroom/src/pool/queue.rs"]
pub(crate) mod queue;
#[path = "../../crates/greenroom/src/pool/shard.rs"]
pub(crate) mod shard;
#[path = "../../crates/greenroom/src/pool/slot.rs"]
pub(crate) mod slot;
#[path = "slot_state.rs"]
pub(crate) mod slot_state;
#[path = "../../crates/greenroom/src/pool/stamp.rs"]
pub(crate) mod stamp;
#[path = "../../crates/greenroom/src/pool/urgency.rs"]
pub(crate) mod urgency;
#[path = "../../crates/greenroom/src/pool/visits.rs"]
mod visits;
#[path = "../../crates/greenroom/src/pool/wake.rs"]
pub(crate) mod wake;
#[path = "watchdog.rs"]
pub(crate) mod watchdog;
#[path = "../../crates/greenroom/src/pool/watchdog_handle.rs"]
pub(crate) mod watchdog_handle;
#[path = "../../crates/greenroom/src/pool/worker_task.rs"]
pub(crate) mod worker_task;

#[path = "worker.rs"]
pub(crate) mod worker;

pub(crate) mod settings {
    pub(crate) use super::core::Settings;
}

/// The lock around the queues of a shard.
pub(crate) mod lock {
    pub(crate) type Lock<T> = crate::sync::Mutex<T>;
    pub(crate) type Locked<'a, T> = crate::sync::MutexGuard<'a, T>;

    pub(crate) fn locked<T>(lock: &Lock<T>) -> Locked<'_, T> {
        lock.lock()
    }
}
