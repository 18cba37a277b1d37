//! `greenroom store check|backup|compact|export PATH`: maintains data that outlives a run.

mod letters;
mod log;

use std::{path::Path, process::ExitCode};

use crate::{
    cli::StoreAction,
    exit::{self, Exit},
};

/// The content of a directory.
enum StoreKind {
    /// A durable log.
    Log,
    /// A store of dead letters.
    Letters,
}

impl StoreKind {
    fn detect(path: &Path) -> Result<Self, String> {
        if greenroom_bus::store::log::is_log(path) {
            return Ok(Self::Log);
        }
        if greenroom_bus::store::letters::is_letter_store(path) {
            return Ok(Self::Letters);
        }
        Err(format!(
            "{}: this directory is not a store of greenroom; name the directory of a log or of dead letters",
            path.display()
        ))
    }
}

/// Runs the command, and prints the result.
pub fn store(action: &StoreAction) -> ExitCode {
    let path = match action {
        StoreAction::Check { path }
        | StoreAction::Backup { path, .. }
        | StoreAction::Compact { path, .. }
        | StoreAction::Export { path } => path,
    };
    let done = StoreKind::detect(path).and_then(|kind| match kind {
        StoreKind::Log => log::act(action),
        StoreKind::Letters => letters::act(action),
    });
    match done {
        Ok(answer) => exit::answer(&answer),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}
