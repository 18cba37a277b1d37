//! Instructions per message: what a machine without hardware counters can repeat exactly.
//!
//! callgrind counts all that a process runs. Two runs of which one has more messages are
//! subtracted, so that start and end are not counted. It runs one thread at a time, so the figure
//! says nothing of cache lines that go to and fro.

use std::{io, process::Command};

use crate::Failure;

const VALGRIND: &str = "valgrind";

/// What this program takes for each message, where it does so many and twice as many when it is run
/// with the arguments that this gives.
///
/// # Errors
/// There is no valgrind, a run failed, or the longer one took no more.
pub fn per_message(messages: u64, args: impl Fn(u64) -> Vec<String>) -> Result<f64, Failure> {
    let (short, long) = (collected(&args(messages))?, collected(&args(2 * messages))?);
    match long.checked_sub(short) {
        Some(more) if more > 0 => Ok(more as f64 / messages as f64),
        _ => Err(format!("{short} instructions for {messages} messages, {long} for twice as many")
            .into()),
    }
}

/// What callgrind says when it ends: `==1== Collected : 117221827`.
fn collected(args: &[String]) -> Result<u64, Failure> {
    let mut valgrind = Command::new(VALGRIND);
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let ran = valgrind.arg(std::env::current_exe()?).args(args).output();
    let ran = ran.map_err(|error| missing(&error))?;
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
pub fn version() -> Result<String, Failure> {
    let ran = Command::new(VALGRIND).arg("--version").output().map_err(|error| missing(&error))?;
    Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
}

fn missing(error: &io::Error) -> String {
    format!("{VALGRIND}: {error}; it counts the instructions: install the package valgrind")
}
