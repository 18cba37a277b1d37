//! Instructions per message: what a machine without hardware counters can repeat exactly.
//!
//! callgrind counts all that a process runs. Two runs of which one sends more messages are subtracted, so that start and end
//! are not counted. It runs one thread at a time, so the figure says nothing of cache lines that go to and fro.

use std::process::Command;

use crate::{Failure, rounds::Side, rows::Row, stage::Threads};

/// Messages of the shorter run (fewer calls); the longer has twice as many. More than 256 mailboxes hold, so that both have
/// senders that wait.
const MESSAGES: u64 = 300_000;

/// Counts both sides of a row on one thread, and gives a line of the table.
pub fn line(row: Row) -> Result<String, Failure> {
    let baseline = per_message(row, Side::Baseline)?;
    let greenroom = per_message(row, Side::Greenroom)?;
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

fn per_message(row: Row, side: Side) -> Result<u64, Failure> {
    let messages = row.scaled(MESSAGES);
    let (short, long) = (collected(row, side, messages)?, collected(row, side, 2 * messages)?);
    Ok(long.saturating_sub(short) / messages)
}

/// What callgrind says when it ends: `==1== Collected : 117221827`.
fn collected(row: Row, side: Side, messages: u64) -> Result<u64, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(std::env::current_exe()?).args(["callgrind", row.name, side.name()]);
    let ran = valgrind.arg(messages.to_string()).output();
    let text = ran.map_err(|error| format!("valgrind: {error}"))?.stderr;
    let text = String::from_utf8_lossy(&text);
    let count = text.lines().find_map(|line| line.split_once("Collected :"));
    let count = count.ok_or_else(|| format!("callgrind counted nothing: {}", text.trim()))?.1;
    Ok(count.trim().parse()?)
}

/// Runs one side once, with nothing around it that would count.
pub fn run_once(row: Row, side: Side, messages: u64, threads: Threads) -> Result<(), Failure> {
    let figure = row.prepare(messages, threads, None)?(side)?.value;
    println!("{} {figure:.3} {}", row.name, row.unit());
    Ok(())
}
