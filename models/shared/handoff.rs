//! Calls that skip the queue: the slot is the product's.

#[path = "../../crates/greenroom/src/pool/handoff/slot.rs"]
pub(crate) mod slot;
