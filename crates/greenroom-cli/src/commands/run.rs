//! `greenroom run FILE`: from the configuration to the final report.

use std::process::ExitCode;

use crate::{
    cli::{ReportFormat, Source},
    commands::check,
    config::Config,
    exit::Exit,
};

/// Loads a configuration as `check` does, and runs it.
pub fn from_file(source: &Source, report: ReportFormat) -> ExitCode {
    match check::load(source) {
        Ok((config, _)) => run(config, report),
        Err(exit) => exit.into(),
    }
}

/// Runs a configuration that was checked, until its inputs end or a signal comes.
pub fn run(config: Config, report: ReportFormat) -> ExitCode {
    tracing::debug!(?config, ?report, "configuration loaded");
    Exit::CouldNotRun.because("the engine is not linked into this build; use `greenroom check`")
}
