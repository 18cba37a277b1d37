//! `greenroom run FILE`: from the configuration to the final report.

mod dry;
mod interrupt;

use std::{
    io::IsTerminal,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use greenroom_bus::{
    engine::{Control, RunReport},
    handler::exec::kill_all,
};

use crate::{
    admin::{Daemon, Figures, History, Listener, Open},
    cli::{ReportFormat, RunArgs, Source},
    commands::check,
    config::Config,
    exit::{self, Exit, LAST_TASKS},
    progress::{self, Snapshot},
    report::{self, AllAnswers},
    run::{assemble, reload::Reload, targets::Targets},
    telemetry::{self, Telemetry},
};

/// How long senders still get answers once everything is handled.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Loads a configuration like `check`, and runs it.
pub fn from_file(arguments: &RunArgs) -> ExitCode {
    let RunArgs { source, report, dry_run } = arguments;
    match check::load(source) {
        Ok((config, _)) if *dry_run => dry::run(&config),
        Ok((config, _)) => run(config, source, *report),
        Err(exit) => exit.into(),
    }
}

/// Runs a checked configuration until its inputs end or a signal arrives.
fn run(config: Config, source: &Source, format: ReportFormat) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    // Decided here: a reload does not change it.
    let has_standard_output = config.has_standard_output();
    let telemetry = match Telemetry::start(&config) {
        Ok(telemetry) => telemetry,
        Err(why) => return Exit::CouldNotRun.because(why),
    };
    let ended = runtime.block_on(run_to_the_end(config, source, &telemetry));
    runtime.shutdown_timeout(LAST_TASKS);
    // The processes of handlers that could not be dropped, because a thread is blocked.
    kill_all();
    telemetry.finish();
    match ended {
        Ok(Some((report, answers))) => conclude(&report, &answers, format, has_standard_output),
        Ok(None) => {
            tracing::info!("ended before it started: nothing was read");
            Exit::Success.into()
        }
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// The report, and the answers to senders; nothing if a signal arrived before the start.
///
/// # Errors
/// Why it could not start.
async fn run_to_the_end(
    config: Config,
    source: &Source,
    telemetry: &Telemetry,
) -> Result<Option<(RunReport, AllAnswers)>, String> {
    // A log may take long to open, and a server to answer: a SIGHUP in the meantime must not end
    // the process, and a SIGTERM ends it as it would later.
    let (mut signals, hangups) = (interrupt::Signals::new()?, interrupt::Hangups::new()?);
    // Bound first: if it cannot listen, nothing has been opened.
    let listener = config.admin.as_ref().map(Listener::bind).transpose()?;
    let targets = Arc::new(Targets::default());
    let assembled = tokio::select! {
        assembled = assemble::engine(&config, &targets, telemetry.recorder()) => assembled?,
        () = signals.next() => return Ok(None),
    };
    let (engine, layers, dead_letters) = assembled;
    let layers = Arc::new(layers);
    let (control, deadline) = (engine.control(), config.shutdown.deadline);
    let (has_admin, outage_limit) = (config.admin.is_some(), config.outage.limit);
    // A progress bar would be drawn over events on the same terminal.
    let may_draw = !(config.has_standard_output() && std::io::stdout().is_terminal());
    let runtime = tokio::runtime::Handle::current();
    let servers = targets.clone();
    let admin = config.admin.clone();
    let reload = Reload::new(source.clone(), control.clone(), config, runtime, targets);
    let reload = Arc::new(reload);
    let signals = (signals, hangups);
    let _watch = interrupt::watch(control.clone(), deadline, signals, reload.clone());
    let (of_figures, counts) = (admin.as_ref(), telemetry.counts());
    let figures = Figures::new(control.clone(), reload.clone(), layers.clone(), of_figures, counts);
    let figures = Arc::new(figures);
    telemetry.measure(measured(&figures, admin.is_some()));
    let daemon = Daemon {
        control: control.clone(),
        reload,
        layers: layers.clone(),
        dead_letters,
        figures,
        history: History::default(),
        started: Instant::now(),
    };
    let _open: Option<Open> = listener.map(|listener| listener.open(daemon)).transpose()?;
    tokio::select! {
        biased;
        report = engine.run() => {
            // Requests being stored are answered; the next run handles their events.
            let answers = servers.close_servers(LAST_ANSWERS).await;
            layers.conclude();
            Ok(Some((report, answers)))
        }
        () = progress::show(may_draw, move || snapshot(&control, has_admin, outage_limit)) => unreachable!("progress is shown until it is dropped"),
    }
}

/// The figures for telemetry. With an admin listener, that one observes the engine once a second.
fn measured(figures: &Arc<Figures>, has_admin: bool) -> telemetry::TelemetrySource {
    let (read, looked) = (figures.clone(), figures.clone());
    telemetry::TelemetrySource {
        families: Box::new(move || read.families()),
        look: (!has_admin).then(|| Box::new(move || looked.look()) as Box<_>),
    }
}

fn snapshot(control: &Control, has_admin: bool, outage_limit: Duration) -> Snapshot {
    let progress = control.progress();
    let handlers = control.handler_views().into_iter();
    let outages = handlers.filter_map(|handler| {
        Some((format!("handler `{}` in outage", handler.name), handler.outage?.lasted))
    });
    let troubles = control.output_views().into_iter().filter_map(|output| {
        let trouble = output.trouble?;
        let how = if trouble.paused { "paused" } else { "failing" };
        Some((format!("output `{}` {how}", output.name), trouble.lasted))
    });
    let inputs = control.input_views().into_iter().filter_map(|input| {
        let status = input.trouble()?;
        let what = format!("input `{}` {}", input.name, status.state.word());
        Some((what, status.lasted))
    });
    Snapshot {
        taken: progress.taken,
        settled: progress.settled,
        dead_lettered: progress.dead_lettered,
        parked_keys: progress.parked_keys,
        parked_events: progress.parked_events,
        has_admin,
        fraction: progress.read,
        behind: progress.behind,
        outages: outages.chain(troubles).chain(inputs).collect(),
        outage_limit,
    }
}

/// Events on standard output stay alone there: the report then goes to standard error.
fn conclude(
    report: &RunReport,
    answers: &AllAnswers,
    format: ReportFormat,
    has_standard_output: bool,
) -> ExitCode {
    let text = report::render(report, answers, format);
    let printed = if has_standard_output { exit::answer_aside(&text) } else { exit::answer(&text) };
    if report.is_clean() { printed } else { Exit::Refused.into() }
}
