//! Calls that skip the queue: what passes through a slot is the product's.

#[path = "../../crates/greenroom/src/pool/handoff/pool_exchange.rs"]
pub(crate) mod pool_exchange;
