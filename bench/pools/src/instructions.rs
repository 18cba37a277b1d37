//! Instructions per message of both sides of a row.

use guard::callgrind;

use crate::{Failure, rounds::Side, rows::Row, stage::Threads};

/// Messages of the shorter run (fewer calls); the longer has twice as many. More than 256 mailboxes
/// hold, so that both have senders that wait.
const MESSAGES: u64 = 300_000;

/// Counts both sides of a row on one thread, and gives a line of the table.
pub fn line(row: Row) -> Result<String, Failure> {
    let whole = |side| per_message(row, side).map(|count| count.round() as u64);
    let (baseline, greenroom) = (whole(Side::Baseline)?, whole(Side::Greenroom)?);
    let asked = row.instructions().map_or_else(String::new, |(floor, target)| {
        let verdict = match greenroom {
            own if own <= target => "target",
            own if own <= floor => "floor",
            _ => "BELOW FLOOR",
        };
        format!("{floor:>7} {target:>7}  {verdict}")
    });
    Ok(format!("{:<12} {baseline:>10} {greenroom:>10}  {asked}", row.name))
}

pub fn heading() -> String {
    format!(
        "{:<12} {:>10} {:>10}  {:>7} {:>7}  verdict",
        "row", "baseline", "greenroom", "floor", "target"
    )
}

/// What one side of a row takes for each message, or call.
pub fn per_message(row: Row, side: Side) -> Result<f64, Failure> {
    callgrind::per_message(row.scaled(MESSAGES), |messages| {
        ["callgrind", row.name, side.name(), &messages.to_string()].map(str::to_owned).to_vec()
    })
}

/// Runs one side once, with nothing around it that would count.
pub fn run_once(row: Row, side: Side, messages: u64, threads: Threads) -> Result<(), Failure> {
    let figure = row.prepare(messages, threads, None)?(side)?.value;
    println!("{} {figure:.3} {}", row.name, row.unit());
    Ok(())
}
