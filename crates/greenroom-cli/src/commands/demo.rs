//! `greenroom demo`: shows what order per key is worth, in ten seconds, unconfigured (C14).
//!
//! ```text
//! seed ──▶ arrivals: skewed keys, Poisson ──▶ a keyed pool ──▶ target: checks each key's numbers
//!                                        └──▶ channels by hash ──▶ target          (--slow-key)
//! ```
//!
//! Without options, the target is flaky, and refused messages are retried in order. With
//! `--slow-key`, one key takes 200 ms a message, and the same arrivals go to a pool and to the
//! usual alternative: a channel and a task per worker, chosen by the key's hash. With
//! `--dashboard`, it runs the engine instead, for a look in a browser; `--playground` is a page on
//! which a visitor changes the load of a keyed pool and of one by hash.

mod arrivals;
mod dashboard;
mod ledger;
mod playground;
mod screen;
mod show;
mod side;
mod table;
mod target;
#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use self::show::Show;
use crate::{
    cli::DemoArgs,
    exit::{self, Exit, LAST_TASKS},
};

/// The next step for a curious visitor.
const SEE: &str = "`greenroom demo --playground` shows it live, with sliders, in a browser";

/// Runs it, and prints the counts.
pub fn demo(args: &DemoArgs) -> ExitCode {
    if let Some(address) = &args.dashboard {
        return dashboard::dashboard(address);
    }
    if let Some(address) = &args.playground {
        return playground::playground(address);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Exit::CouldNotRun.because(format_args!("no threads: {error}")),
    };
    let played = runtime.block_on(async {
        let show = Show::new(args.slow_key, args.seed, args.seconds.0);
        tokio::select! {
            biased;
            played = show.play() => played.map(|()| last(&show)),
            () = screen::show(&show) => unreachable!("the screen is shown until it is dropped"),
        }
    });
    runtime.shutdown_timeout(LAST_TASKS);
    match played {
        Ok((table, defects)) => conclude(&table, &defects),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// The last table and the defects.
fn last(show: &Show) -> (String, Vec<String>) {
    let defects = show.sides.iter().flat_map(|side| side.defects()).collect();
    (table::last(show), defects)
}

fn conclude(table: &str, defects: &[String]) -> ExitCode {
    let printed = exit::answer(table);
    match defects {
        [] => {
            // When standard error is closed, nothing can be reported any more.
            let _ = writeln!(io::stderr(), "{SEE}");
            printed
        }
        defects => Exit::Refused
            .because(format_args!("{} (a defect: please report it)", defects.join(", "))),
    }
}
