//! What an operator does to a running greenroom (C22).

use clap::{Args, Subcommand};

use crate::admin::ask::ADDRESS;

/// What becomes of a parked key.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Attempt the event anew that parked it
    #[command(visible_aliases = ["release", "replay"])]
    Resume(KeyDecision),
    /// Make that event a dead letter, and go on with the next
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
    /// About the event with this id: the one that was looked at. Without it, the event is shown,
    /// and a terminal asks
    #[arg(long, value_name = "ID")]
    pub event: Option<String>,
}

/// What is done to a pool.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Start no further attempt in it
    Pause(NamedAt),
    /// Let it go on
    Resume(NamedAt),
    /// Add or remove workers until there are so many
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

/// What is done to a handler.
#[derive(Debug, Subcommand)]
pub enum HandlerCommand {
    /// Start no further attempt of it
    Pause(NamedAt),
    /// Let it go on
    Resume(NamedAt),
}

/// What is done to an output.
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
