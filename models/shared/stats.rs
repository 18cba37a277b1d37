//! The counters: the product's.

#[path = "../../crates/greenroom/src/pool/stats/counters.rs"]
pub(crate) mod counters;
