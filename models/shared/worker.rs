//! What a worker does next: the product's. The shell around it is played, in `player/worker.rs`.

#[path = "../../crates/greenroom/src/pool/worker/driver.rs"]
mod driver;
#[path = "in_flight.rs"]
pub(crate) mod in_flight;
#[path = "../../crates/greenroom/src/pool/worker/in_place.rs"]
pub(crate) mod in_place;
#[path = "../../crates/greenroom/src/pool/worker/task.rs"]
pub(crate) mod task;

pub(crate) use driver::{Driver, Step};
