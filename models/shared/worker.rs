//! What a worker does next: the product's. The shell around it is played, in `player.rs`.

#[path = "../../crates/greenroom/src/pool/worker/coalesce.rs"]
mod coalesce;
#[path = "../../crates/greenroom/src/pool/worker/driver.rs"]
mod driver;
#[path = "../../crates/greenroom/src/pool/worker/habit.rs"]
mod habit;
#[path = "in_flight.rs"]
pub(crate) mod in_flight;
#[path = "../../crates/greenroom/src/pool/worker/in_place.rs"]
pub(crate) mod in_place;
#[path = "../../crates/greenroom/src/pool/worker/pacing.rs"]
mod pacing;
#[path = "../../crates/greenroom/src/pool/worker/patience.rs"]
mod patience;
#[path = "../../crates/greenroom/src/pool/worker/task.rs"]
pub(crate) mod task;
#[path = "../../crates/greenroom/src/pool/worker/turn.rs"]
mod turn;

pub(crate) use driver::{Driver, Step};
