//! Instructions per event, guarded.

use std::{path::PathBuf, process::ExitCode};

use guard::{Guard, callgrind};

use crate::{Failure, memory};

/// Events of the shorter run; the longer has twice as many.
const EVENTS: u64 = 100_000;
/// By subject, and in any order.
const ROWS: [&str; 2] = ["memory-ordered", "memory"];
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../instructions-of-events.json");

fn guarded() -> Guard<'static> {
    Guard {
        program: "end-to-end",
        about: "Instructions of the engine per event, from memory to nowhere, counted by callgrind with everything on one thread.",
        rows: ROWS.to_vec(),
        file: PathBuf::from(RECORDED),
        record: false,
    }
}

pub fn run(options: &[&str]) -> Result<ExitCode, Failure> {
    let count = |row| {
        callgrind::per_message(EVENTS, |events| {
            ["callgrind", row, &events.to_string()].map(str::to_owned).to_vec()
        })
    };
    guard::run(&guarded().of(options)?, &count)?;
    Ok(ExitCode::SUCCESS)
}

/// What is counted.
pub fn run_once(row: &str, events: u64) -> Result<ExitCode, Failure> {
    let name = format!("greenroom-counted-{}", std::process::id());
    let dead_letters = std::env::temp_dir().join(name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ran = match row {
        "memory-ordered" => runtime.block_on(memory::engine(events, &dead_letters)),
        "memory" => runtime.block_on(memory::in_any_order(events, &dead_letters)),
        other => return Err(format!("no row {other}").into()),
    };
    std::fs::remove_file(dead_letters).ok();
    ran.map(|_| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_has_all_rows_of_the_guard() {
        guard::check(&guarded()).unwrap();
    }
}
