//! Tests of several parts of the core together.

mod affinity;
mod deserted;
mod fast_path;
mod handed;
mod interleavings;
mod leaving;
mod operators;
mod points;
mod times;
mod unaided;
mod without_tasks;
