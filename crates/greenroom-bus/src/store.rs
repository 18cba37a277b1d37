//! What outlives a run.

pub mod log;
