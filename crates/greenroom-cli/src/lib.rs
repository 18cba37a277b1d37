//! The `greenroom` command: one configuration file, events in, handlers, outputs, a report.
//!
//! - [`config`]: the options of the file, each declared once, and all checks in one run.
//! - [`report`] and [`progress`]: the output of a run, during it and at its end.
//! - [`commands`]: `run`, `check` and the others.

mod admin;
mod admin_client;
pub mod cli;
pub mod commands;
pub mod config;
pub mod exit;
mod file_limit;
mod latencies;
mod letters;
mod logging;
mod panics;
pub mod progress;
pub mod report;
mod run;
mod shell;
mod telemetry;
mod version;

use std::process::ExitCode;

use clap::Parser;

use self::cli::{Cli, Command};

/// Parses the command line and runs the command.
pub fn main() -> ExitCode {
    panics::install();
    if let Err(error) = file_limit::take_as_full_disk() {
        return exit::Exit::CouldNotRun.because(format_args!("cannot handle signals: {error}"));
    }
    file_limit::raise_open_files();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    // Cases that fail are part of most tests, and are told by their results.
    let is_quiet =
        matches!(cli.command, Command::Test(_)) && std::env::var_os("RUST_LOG").is_none();
    let level = cli.log_level.as_deref().or_else(|| is_quiet.then_some("off"));
    if let Err(why) = logging::start(cli.log, level) {
        return exit::Exit::BadConfiguration.because(why);
    }
    commands::execute(cli.command)
}

/// Help and version are answers; anything else is a mistake.
fn usage(error: &clap::Error) -> ExitCode {
    // When the terminal is closed, nothing can be reported any more.
    let _ = error.print();
    if error.use_stderr() { exit::Exit::BadConfiguration.into() } else { ExitCode::SUCCESS }
}
