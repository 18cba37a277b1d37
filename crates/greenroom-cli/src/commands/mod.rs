//! The commands, one per file.

pub mod advise;
mod agreed;
pub mod bench;
pub mod check;
pub mod completions;
pub mod dead_letters;
pub mod demo;
pub mod explain_status;
pub mod init;
pub mod man;
pub mod operate;
pub mod route;
pub mod run;
pub mod schema;
pub mod send;
pub mod status;
pub mod store;
pub mod test;
pub mod top;
mod trial;
pub mod why;

use std::process::ExitCode;

use crate::cli::Command;

/// Runs this one.
pub fn execute(command: Command) -> ExitCode {
    match command {
        Command::Run(run) => run::from_file(&run),
        Command::Check(source) => check::check(&source),
        Command::Route(route) => route::route(&route),
        Command::Test(test) => test::test(&test),
        Command::Advise(advise) => advise::advise(&advise),
        Command::Why(why) => why::why(&why),
        Command::Status(status) => status::status(&status),
        Command::Key(what) => operate::key(&what),
        Command::Pool(what) => operate::pool(&what),
        Command::Share(what) => operate::share(&what),
        Command::Handler(what) => operate::handler(&what),
        Command::Output(what) => operate::output(&what),
        Command::Reload { address } => operate::reload(&address),
        Command::Top(top) => top::top(&top),
        Command::DeadLetters(letters) => dead_letters::dead_letters(&letters),
        Command::ExplainStatus(explain) => explain_status::explain(&explain),
        Command::Send(send) => send::send(&send),
        Command::Schema { reference, tests } => schema::print(reference, tests),
        Command::Init(init) => init::init(&init),
        Command::Demo(demo) => demo::demo(&demo),
        Command::Bench(bench) => bench::bench(&bench),
        Command::Store(store) => store::store(&store.action),
        Command::Completions { shell } => completions::print(shell),
        Command::Man(man) => man::man(&man),
    }
}
