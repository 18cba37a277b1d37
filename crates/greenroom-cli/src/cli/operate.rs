//! An operator's actions on a running greenroom (C22).

use clap::{Args, Subcommand};

use crate::admin::ask::ADDRESS;

/// Decisions about a parked key.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Attempt again the event that parked it
    #[command(visible_aliases = ["release", "replay"])]
    Resume(KeyDecision),
    /// Make that event a dead letter, and continue with the next
    Skip(KeyDecision),
    /// Make dead letters of that event and of all that wait behind it
    Drop(KeyDecision),
}

/// Which key.
#[derive(Debug, Args)]
pub struct KeyDecision {
    /// The key: a value of `order_by`
    #[arg(allow_hyphen_values = true)]
    pub key: String,
    /// Where the admin listener of the running greenroom is
    #[arg(default_value = ADDRESS)]
    pub address: String,
    /// With this handler; otherwise with each that it is parked with
    #[arg(long, value_name = "NAME")]
    pub handler: Option<String>,
    /// The id of the event that was looked at. Without it, the event is shown, and a terminal asks
    #[arg(long, value_name = "ID")]
    pub event: Option<String>,
}

/// Actions on a pool.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Start no further attempt in it
    Pause(NamedAt),
    /// Resume it
    Resume(NamedAt),
    /// Add or remove workers to reach this number
    Resize {
        /// Which
        #[command(flatten)]
        at: NamedAt,
        /// How many it is to have
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65_536))]
        workers: u32,
        /// Do not ask, also where that is many times as many as there are
        #[arg(long)]
        yes: bool,
    },
}

/// Actions on a handler.
#[derive(Debug, Subcommand)]
pub enum HandlerCommand {
    /// Start no further attempt of it
    Pause(NamedAt),
    /// Resume it
    Resume(NamedAt),
}

/// Actions on an output.
#[derive(Debug, Subcommand)]
pub enum OutputCommand {
    /// Try at once whether its target was mended
    Resume(NamedAt),
}

/// A part of a running greenroom, by its name.
#[derive(Debug, Args)]
pub struct NamedAt {
    /// Its name in the configuration
    pub name: String,
    /// Where the admin listener of the running greenroom is
    #[arg(default_value = ADDRESS)]
    pub address: String,
}
