//! An operator's actions on a running greenroom (C22).

use clap::{Args, Subcommand};

use crate::admin::ask::ADDRESS;

/// Decisions on a parked key.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Attempt again the event that parked it
    #[command(visible_aliases = ["release", "replay"])]
    Resume(KeyDecision),
    /// Make that event a dead letter, and continue with the next
    Skip(KeyDecision),
    /// Make dead letters of that event and of all events that wait behind it
    Drop(KeyDecision),
}

/// The key and its decision.
#[derive(Debug, Args)]
pub struct KeyDecision {
    /// The key: a value of `order_by`
    #[arg(allow_hyphen_values = true)]
    pub key: String,
    /// The address of the running greenroom's admin listener
    #[arg(default_value = ADDRESS)]
    pub address: String,
    /// Only with this handler; otherwise with every handler that it is parked with
    #[arg(long, value_name = "NAME")]
    pub handler: Option<String>,
    /// The id of the event that was inspected. Without it, the event is shown, and a terminal asks
    #[arg(long, value_name = "ID")]
    pub event: Option<String>,
}

/// Actions on a pool.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Start no further attempts in it
    Pause(NamedAt),
    /// Resume it
    Resume(NamedAt),
    /// Add or remove workers to reach this number
    Resize {
        /// The pool
        #[command(flatten)]
        at: NamedAt,
        /// The new number of workers
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65_536))]
        workers: u32,
        /// Do not ask, even if that is many times the current number
        #[arg(long)]
        yes: bool,
    },
}

/// Actions on a handler.
#[derive(Debug, Subcommand)]
pub enum HandlerCommand {
    /// Start no further attempts of it
    Pause(NamedAt),
    /// Resume it
    Resume(NamedAt),
}

/// Actions on an output.
#[derive(Debug, Subcommand)]
pub enum OutputCommand {
    /// Try at once whether its target is available again
    Resume(NamedAt),
}

/// A part of a running greenroom, by its name.
#[derive(Debug, Args)]
pub struct NamedAt {
    /// Its name in the configuration
    pub name: String,
    /// The address of the running greenroom's admin listener
    #[arg(default_value = ADDRESS)]
    pub address: String,
}
