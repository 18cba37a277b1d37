//! `greenroom run FILE`: from the configuration to the final report.

mod assemble;
mod interrupt;
mod summary;

use std::{process::ExitCode, time::Duration};

use greenroom_bus::engine::{Control, RunReport};

use crate::{
    cli::{ReportFormat, Source},
    commands::check,
    config::Config,
    exit::{self, Exit},
    progress::{self, Snapshot},
};

/// How long tasks that outlive the run (a handler that blocks its thread) may hold up the exit.
const LAST_TASKS: Duration = Duration::from_millis(100);

/// Loads a configuration as `check` does, and runs it.
pub fn from_file(source: &Source, report: ReportFormat) -> ExitCode {
    match check::load(source) {
        Ok((config, _)) => run(config, report),
        Err(exit) => exit.into(),
    }
}

/// Runs a configuration that was checked, until its inputs end or a signal comes.
pub fn run(config: Config, format: ReportFormat) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let ended = runtime.block_on(run_to_the_end(&config));
    runtime.shutdown_timeout(LAST_TASKS);
    match ended {
        Ok(report) => conclude(&report, format),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

async fn run_to_the_end(config: &Config) -> Result<RunReport, String> {
    let engine = assemble::engine(config).await?;
    let control = engine.control();
    let _watch = interrupt::watch(control.clone(), config.shutdown_deadline)?;
    tokio::select! {
        biased;
        report = engine.run() => Ok(report),
        () = progress::show(move || snapshot(&control)) => unreachable!("progress is shown until it is dropped"),
    }
}

fn snapshot(control: &Control) -> Snapshot {
    let progress = control.progress();
    Snapshot {
        taken: progress.taken,
        settled: progress.settled,
        dead_lettered: progress.dead_lettered,
        fraction: progress.read,
    }
}

fn conclude(report: &RunReport, format: ReportFormat) -> ExitCode {
    let printed = exit::answer(&summary::of(report).render(format));
    if report.is_clean() { printed } else { Exit::Refused.into() }
}
