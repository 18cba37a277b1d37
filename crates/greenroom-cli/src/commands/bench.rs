//! `greenroom bench`: what a pool of the library does on this machine (C06).
//!
//! ```text
//! senders ──▶ pool: workers, keys, order ──▶ work     what is measured
//! senders ──────────────────────────────────▶ work    the floor: the same without any engine
//! ```
//!
//! As fast as it goes: a task for each core sends for a while, the pool's bound holds it
//! back, and all that was sent is waited for. At a rate: arrivals that wait for nobody (open
//! loop), by threads beside the runtime, as a timer of the runtime is a millisecond late by
//! itself; a message's time counts from when it arrived, so that a stall is charged for
//! everybody whom it kept waiting.
//!
//! The floor keeps no order, bounds nothing and survives no panic. It says how much of the
//! machine is left for an engine.

mod full;
mod load;
mod machine;
mod measure;
mod presets;
mod rows;
mod table;
mod work;

use std::process::ExitCode;

use self::{
    load::Load,
    measure::BenchSide,
    rows::row,
    table::{Report, Row},
};
use crate::{
    cli::BenchArgs,
    exit::{self, Exit},
};

/// Measures and prints.
pub fn bench(args: &BenchArgs) -> ExitCode {
    let rows = match &args.presets {
        None => rows(args),
        Some(names) => match presets::check(names) {
            Ok(()) => presets::rows(args, names),
            Err(why) => return Exit::BadConfiguration.because(why),
        },
    };
    match rows {
        Ok(rows) => exit::answer(&Report::new(args, rows).render()),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// The floor and the pool; or the pool alone, with its memory.
fn rows(args: &BenchArgs) -> Result<Vec<Row>, String> {
    let load = Load::new(args);
    if !args.pool_alone {
        return [BenchSide::Floor, BenchSide::Pool]
            .iter()
            .map(|side| row(&load, *side, args.rate))
            .collect();
    }
    let memory = full::measure(&load)?;
    Ok(vec![row(&load, BenchSide::Pool, args.rate)?.with_memory(memory)])
}
