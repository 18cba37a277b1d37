//! `greenroom demo --dashboard`: a simulated run that never ends, for a look in a browser.

use std::{env, fs, path::Path, process};

use crate::{
    cli::{ReportFormat, RunArgs, Source},
    commands::run,
    exit::Exit,
};

const CONFIG: &str = include_str!("dashboard.yaml");

/// Runs until Ctrl-C, in its own directory that is removed afterwards.
pub(super) fn dashboard(address: &str) -> process::ExitCode {
    let directory = env::temp_dir().join(format!("greenroom-demo-{}", process::id()));
    let file = directory.join("greenroom.yaml");
    // Fails if the directory exists.
    let made = fs::create_dir(&directory).and_then(|()| fs::write(&file, CONFIG));
    if let Err(error) = made {
        let next = "set TMPDIR to a directory that can be written";
        let place = directory.display();
        return Exit::CouldNotRun.because(format_args!("cannot write to {place}: {error}; {next}"));
    }
    let source = Source { file, settings: vec![format!("admin.listen='{address}'")] };
    let code = run::from_file(&RunArgs { source, report: ReportFormat::Text, dry_run: false });
    remove(&directory);
    code
}

fn remove(directory: &Path) {
    if let Err(error) = fs::remove_dir_all(directory) {
        tracing::warn!(place = %directory.display(), %error, "the demo's directory is still there");
    }
}
