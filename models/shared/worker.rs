//! What a worker does next: the product's. The shell around it is played, in `player/worker.rs`.

#[path = "../../crates/greenroom/src/pool/worker/driver.rs"]
mod driver;
#[path = "in_flight.rs"]
pub(crate) mod in_flight;

pub(crate) use driver::{Driver, Step};
