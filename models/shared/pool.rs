//! A pool: the product's files, and those that are played.

#[path = "core.rs"]
pub(crate) mod core;
#[path = "../../crates/greenroom/src/pool/counters.rs"]
pub(crate) mod counters;
#[path = "failed.rs"]
pub(crate) mod failed;
#[path = "../../crates/greenroom/src/pool/handoff_slot.rs"]
pub(crate) mod handoff_slot;
#[path = "in_flight.rs"]
pub(crate) mod in_flight;
#[path = "../../crates/greenroom/src/pool/in_place.rs"]
pub(crate) mod in_place;
#[path = "../../crates/greenroom/src/pool/mailbox.rs"]
pub(crate) mod mailbox;
#[path = "../../crates/greenroom/src/pool/outgoing.rs"]
pub(crate) mod outgoing;
#[path = "../../crates/greenroom/src/pool/pool_payload.rs"]
pub(crate) mod pool_payload;
#[path = "slot_state.rs"]
pub(crate) mod slot_state;
#[path = "../../crates/greenroom/src/pool/worker_task.rs"]
pub(crate) mod worker_task;

#[path = "worker.rs"]
pub(crate) mod worker;

pub(crate) mod settings {
    pub(crate) use super::core::Settings;
}
