//! Messages through an engine: what they carry, how they are read, layered and handled in
//! batches. In virtual time.

mod batches;
mod data;
mod layers;
mod manual;
mod random_layers;

use crate::engine::support;
