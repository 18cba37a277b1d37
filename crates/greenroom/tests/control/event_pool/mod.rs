//! Event-bus pools: their configuration, their promises about messages, and their memory (H01 to
//! H12).

mod config;
mod memory;
mod process;
mod stage;
mod workers;
