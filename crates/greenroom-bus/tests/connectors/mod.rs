//! What every connector promises, for each that there is (V01): order per key, no loss, few
//! repeats, pauses, what is no event, stops, restarts, gaps, partitions that are taken away. What a
//! connector cannot do is told as not applicable.
//!
//! `GREENROOM_SEED` says where chance begins; a failure names it.

mod broker;
mod file;
mod generator;
mod log;
mod memory;
