//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs events through pools of workers, in order per key.
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, max_term_width = 100)]
pub struct Cli {
    /// How logs are written, on standard error [default: human]
    #[arg(long, value_name = "FORMAT", global = true)]
    pub log: Option<LogFormat>,
    /// The least severe log lines shown: off, error, warn, info, debug, trace, or `target=level,...`
    /// [default: RUST_LOG, otherwise info]
    #[arg(long, value_name = "LEVEL", global = true)]
    pub log_level: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a configuration until its inputs end or a signal comes
    ///
    /// The first Ctrl-C drains, the second stops at once. Exit code 0: everything was handled, ignored or
    /// dead-lettered; 1: it could not run; 2: bad configuration; 3: events were refused or left unsettled.
    Run(RunArgs),
    /// Check a configuration and print every problem with its place
    Check(Source),
    /// Print the JSON Schema of the configuration, for editors
    Schema {
        /// Print the reference page (Markdown) instead
        #[arg(long)]
        reference: bool,
    },
    /// Write a commented starting configuration, sample data and a worker script
    Init(InitArgs),
}

/// A configuration file with settings on top.
#[derive(Debug, Args)]
pub struct Source {
    /// The configuration file: YAML, or TOML when it ends in `.toml`
    pub file: PathBuf,
    /// Set one value, for example `--set pools.default.workers=8`
    #[arg(long = "set", value_name = "a.b=VALUE")]
    pub settings: Vec<String>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to run.
    #[command(flatten)]
    pub source: Source,
    /// How the final report is written, on standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub report: ReportFormat,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The kind of configuration; this version has `orders`
    #[arg(default_value = "orders")]
    pub template: String,
    /// The directory to write into
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Human,
    /// One JSON object per line
    Json,
}

/// How the final report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// An aligned table
    Text,
    /// One JSON object
    Json,
}
