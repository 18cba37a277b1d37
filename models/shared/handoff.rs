//! Calls that skip the queue: the slot and what passes through it are the product's.

#[path = "../../crates/greenroom/src/pool/handoff/exchange.rs"]
pub(crate) mod exchange;
#[path = "../../crates/greenroom/src/pool/handoff/pool_exchange.rs"]
pub(crate) mod pool_exchange;
#[path = "../../crates/greenroom/src/pool/handoff/slot.rs"]
pub(crate) mod slot;
