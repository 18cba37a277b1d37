//! `greenroom check FILE`: every problem in one run.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    cli::Source,
    config::{self, Config, Problems},
    exit::{self, Exit},
    logging::colour_on_stderr,
};

/// Checks a configuration and prints its findings.
pub fn check(source: &Source) -> ExitCode {
    match load(source) {
        Ok((config, problems)) => exit::answer(&verdict(source, &config, &problems)),
        Err(exit) => exit.into(),
    }
}

/// Loads a configuration and prints its problems on standard error.
///
/// # Errors
/// The configuration has errors; they have been printed.
pub(crate) fn load(source: &Source) -> Result<(Config, Problems), Exit> {
    told(config::load(&source.file, &source.settings))
}

/// Like [`load`], but looks only at the file itself: nothing that it names is opened.
///
/// # Errors
/// Those of [`load`].
pub(crate) fn load_as_written(source: &Source) -> Result<Config, Exit> {
    told(config::load_as_written(&source.file, &source.settings)).map(|(config, _)| config)
}

fn told((config, problems): (Option<Config>, Problems)) -> Result<(Config, Problems), Exit> {
    // When standard error is closed, nothing can be reported any more.
    let _ = io::stderr().write_all(problems.render(colour_on_stderr()).as_bytes());
    config.map(|config| (config, problems)).ok_or(Exit::BadConfiguration)
}

fn verdict(source: &Source, config: &Config, problems: &Problems) -> String {
    let parts = [
        (config.inputs.len(), "input"),
        (config.pools.len(), "pool"),
        (config.handlers.len(), "handler"),
        (config.outputs.len(), "output"),
    ];
    let parts: Vec<_> = parts.iter().map(|(count, word)| config::plural(*count, word)).collect();
    format!("{}: {} ({})\n", source.file.display(), problems.summary(), parts.join(", "))
}
