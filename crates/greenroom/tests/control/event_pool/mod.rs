//! Event-bus pools: their configuration, what they promise of messages, and their memory (H01 to
//! H12).

mod config;
mod memory;
mod process;
mod stage;
mod workers;
