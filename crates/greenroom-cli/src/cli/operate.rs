//! An operator's actions on a running greenroom (C22).

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::admin_client::ADDRESS;

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

/// Actions on the shares of a pool.
#[derive(Debug, Subcommand)]
pub enum ShareCommand {
    /// List them with their limits, events in hand and waiting events
    List {
        /// Which pool
        #[command(flatten)]
        at: NamedAt,
        /// The first are those with most that waits, most time in hand, or the longest hold
        #[arg(long, value_enum, default_value = "waiting")]
        sort: ShareSort,
    },
    /// Give one other limits, until the end of the run
    #[command(group = ArgGroup::new("limits").required(true).multiple(true))]
    Set {
        /// Which
        #[command(flatten)]
        at: ShareAt,
        /// Its part of the workers' time, relative to other shares
        #[arg(long, group = "limits")]
        weight: Option<u32>,
        /// How many of its events are in hand at most, or `none`
        #[arg(long, value_name = "COUNT", group = "limits")]
        in_hand: Option<String>,
        /// How many attempts are started in a time, such as `20/s`, or `none`
        #[arg(long, group = "limits")]
        rate: Option<String>,
    },
    /// Attempt nothing of it for so long; then one attempt probes
    Hold {
        /// Which
        #[command(flatten)]
        at: ShareAt,
        /// For how long
        #[arg(long)]
        seconds: u64,
    },
    /// Attempt nothing of it until it is resumed
    Pause(ShareAt),
    /// End a pause or a hold
    Resume(ShareAt),
    /// Undo all changes by hand
    Reset(ShareAt),
}

/// The order of a list of shares.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ShareSort {
    /// By waiting events.
    Waiting,
    /// By time in hand.
    Time,
    /// By how long they are held.
    Held,
}

/// A share of a pool.
#[derive(Debug, Args)]
pub struct ShareAt {
    /// The name of the pool
    pub pool: String,
    /// The share: a value of `share_by`
    #[arg(allow_hyphen_values = true)]
    pub share: String,
    /// Where the admin listener of the running greenroom is
    #[arg(default_value = ADDRESS)]
    pub address: String,
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
