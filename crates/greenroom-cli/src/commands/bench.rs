//! `greenroom bench`: what a pool of the library does on this machine (C06).
//!
//! ```text
//! senders ──▶ pool: workers, keys, order ──▶ work     what is measured
//! senders ──────────────────────────────────▶ work    the floor: the same without any engine
//! ```
//!
//! As fast as it goes: a task for each core sends for a while, the pool's bound holds it back, and all that was sent is waited for.
//! At a rate: arrivals that wait for nobody (open loop), by threads beside the runtime, as a timer of the runtime is a millisecond
//! late by itself; a message's time counts from when it arrived, so that a stall is charged for everybody whom it kept waiting.
//!
//! The floor keeps no order, bounds nothing and survives no panic. It says how much of the machine is left for an engine.

mod load;
mod machine;
mod measure;
mod presets;
mod table;
mod work;

use std::process::ExitCode;

use self::{
    load::Load,
    measure::{Pace, Side},
    table::{Report, Row},
};
use crate::{
    cli::BenchArgs,
    exit::{self, Exit},
};

/// Measures and prints.
pub fn bench(args: &BenchArgs) -> ExitCode {
    let rows = if args.presets { presets::rows(args) } else { rows(args) };
    match rows {
        Ok(rows) => exit::answer(&Report::new(args, rows).render()),
        Err(why) => Exit::CouldNotRun.because(why),
    }
}

/// The floor, unless the pool is measured alone, and the pool.
fn rows(args: &BenchArgs) -> Result<Vec<Row>, String> {
    let load = Load::new(args);
    let sides: &[Side] = if args.pool_alone { &[Side::Pool] } else { &[Side::Floor, Side::Pool] };
    sides.iter().map(|side| row(&load, *side, args.rate)).collect()
}

fn row(load: &Load, side: Side, rate: Option<f64>) -> Result<Row, String> {
    let mut row = Row::new(side, load);
    row.fast(&measure::measure(load, side, Pace::Unpaced)?);
    if let Some(rate) = rate {
        row.open_loop(rate, &measure::measure(load, side, Pace::At(rate))?);
    }
    Ok(row)
}
