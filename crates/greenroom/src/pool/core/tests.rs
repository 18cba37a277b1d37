//! Tests of what several parts of the core do together.

mod attendance;
mod deserted;
mod easy;
mod handed;
mod interleavings;
mod points;
mod times;
mod together;
mod unaided;
