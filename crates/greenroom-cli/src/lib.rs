//! The `greenroom` command: one configuration file, events in, handlers, outputs, a report.
//!
//! - [`config`]: the options of the file, each declared once, and all checks in one run.
//! - [`report`] and [`progress`]: the output of a run, during it and at its end.
//! - [`commands`]: `run`, `check`, `why`, `top`, `dead-letters`, `route`, `test`, `explain-status`,
//!   `send`, `schema`, `init`, `demo`, `bench`, `store`, `completions`, `man`.

mod admin;
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
    match cli.command {
        Command::Run(run) => commands::run::from_file(&run),
        Command::Check(source) => commands::check::check(&source),
        Command::Route(route) => commands::route::route(&route),
        Command::Test(test) => commands::test::test(&test),
        Command::Advise(advise) => commands::advise::advise(&advise),
        Command::Why(why) => commands::why::why(&why),
        Command::Status(status) => commands::status::status(&status),
        Command::Key(what) => commands::operate::key(&what),
        Command::Pool(what) => commands::operate::pool(&what),
        Command::Share(what) => commands::operate::share(&what),
        Command::Handler(what) => commands::operate::handler(&what),
        Command::Output(what) => commands::operate::output(&what),
        Command::Reload { address } => commands::operate::reload(&address),
        Command::Top(top) => commands::top::top(&top),
        Command::DeadLetters(letters) => commands::dead_letters::dead_letters(&letters),
        Command::ExplainStatus(explain) => commands::explain_status::explain(&explain),
        Command::Send(send) => commands::send::send(&send),
        Command::Schema { reference, tests } => commands::schema::print(reference, tests),
        Command::Init(init) => commands::init::init(&init),
        Command::Demo(demo) => commands::demo::demo(&demo),
        Command::Bench(bench) => commands::bench::bench(&bench),
        Command::Store(store) => commands::store::store(&store.action),
        Command::Completions { shell } => commands::completions::print(shell),
        Command::Man(man) => commands::man::man(&man),
    }
}

/// Help and version are answers; anything else is a mistake.
fn usage(error: &clap::Error) -> ExitCode {
    // When the terminal is closed, nothing can be reported any more.
    let _ = error.print();
    if error.use_stderr() { exit::Exit::BadConfiguration.into() } else { ExitCode::SUCCESS }
}
