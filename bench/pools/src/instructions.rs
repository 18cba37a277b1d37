//! Instructions per message: what a machine without hardware counters can repeat exactly.
//!
//! callgrind counts all that a process runs. Two runs of which one sends more messages are subtracted, so that start and end
//! are not counted. It runs one thread at a time, so the figure says nothing of cache lines that go to and fro.

use std::{io, process::Command};

use crate::{Failure, rounds::Side, rows::Row, stage::Threads};

/// Messages of the shorter run (fewer calls); the longer has twice as many. More than 256 mailboxes hold, so that both have
/// senders that wait.
const MESSAGES: u64 = 300_000;
const VALGRIND: &str = "valgrind";

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
    let messages = row.scaled(MESSAGES);
    let (short, long) = (collected(row, side, messages)?, collected(row, side, 2 * messages)?);
    match long.checked_sub(short) {
        Some(more) if more > 0 => Ok(more as f64 / messages as f64),
        _ => Err(format!("{short} instructions for {messages} messages, {long} for twice as many")
            .into()),
    }
}

/// What callgrind says when it ends: `==1== Collected : 117221827`.
fn collected(row: Row, side: Side, messages: u64) -> Result<u64, Failure> {
    let mut valgrind = Command::new(VALGRIND);
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(std::env::current_exe()?).args(["callgrind", row.name, side.name()]);
    let ran = valgrind.arg(messages.to_string()).output().map_err(|error| missing(&error))?;
    let text = String::from_utf8_lossy(&ran.stderr);
    if !ran.status.success() {
        return Err(format!("{} of the run that is counted: {}", ran.status, text.trim()).into());
    }
    let count = text.lines().find_map(|line| line.split_once("Collected :"));
    let count = count.ok_or_else(|| format!("callgrind counted nothing: {}", text.trim()))?.1;
    Ok(count.trim().parse()?)
}

/// Which valgrind there is.
///
/// # Errors
/// When there is none.
pub fn valgrind() -> Result<String, Failure> {
    let ran = Command::new(VALGRIND).arg("--version").output().map_err(|error| missing(&error))?;
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

fn missing(error: &io::Error) -> String {
    format!("{VALGRIND}: {error}; it counts the instructions: install the package valgrind")
}

/// Runs one side once, with nothing around it that would count.
pub fn run_once(row: Row, side: Side, messages: u64, threads: Threads) -> Result<(), Failure> {
    let figure = row.prepare(messages, threads, None)?(side)?.value;
    println!("{} {figure:.3} {}", row.name, row.unit());
    Ok(())
}
