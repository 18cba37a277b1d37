//! A slot, and a worker's own mailbox, which is the product's.

#[path = "../../crates/greenroom/src/pool/membership/mailbox.rs"]
pub(crate) mod mailbox;
#[path = "slot_state.rs"]
pub(crate) mod slot_state;
#[path = "../../crates/greenroom/src/pool/membership/starts.rs"]
pub(crate) mod starts;
