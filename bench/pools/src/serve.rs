//! The pool and the hand-written baseline as systems of the comparison: lines of JSON over standard
//! input and output, as `bench/PROTOCOL.md` says.

use std::io::{self, BufRead, Write};

use measure::locked;
use serde_json::{Value, json};

use crate::{
    Failure, memory, rounds::Side, rows::ROWS, sleepers::Sleepers, stage::Threads,
    work::Calibration,
};

/// What a system offers, and the row of this program's own table that it is.
type Offered = (&'static str, &'static str);

const SENDS: [Offered; 10] = [
    ("A4", "A4"),
    ("A256", "A256"),
    ("A4-75ns", "A4-75ns"),
    ("A4-460ns", "A4-460ns"),
    ("A4-2400ns", "A4-2400ns"),
    ("A256-75ns", "A256-75ns"),
    ("A256-460ns", "A256-460ns"),
    ("A256-2400ns", "A256-2400ns"),
    ("B-uniform", "B-uniform"),
    ("B-zipf", "B-zipf"),
];
/// Rows that are not measured as in this program's own table.
const LATENCY: &str = "C";
const FULL: &str = "E-full";
const OTHERS: [Offered; 4] = [(LATENCY, LATENCY), ("D1", "D1"), ("D64", "D64"), (FULL, FULL)];

struct System {
    name: &'static str,
    /// The package whose version counts.
    package: &'static str,
    what: &'static str,
    side: Side,
    rows: Vec<Offered>,
}

fn systems() -> [System; 2] {
    let all = || [&SENDS[..], &OTHERS[..]].concat();
    [
        System {
            name: "greenroom",
            package: "greenroom",
            what: "a Pool; ordered_by for keys",
            side: Side::Greenroom,
            rows: all(),
        },
        System {
            name: "tokio mpsc",
            package: "tokio",
            what: "by hand: a task and a bounded channel for each worker, in turn or by the key's hash; oneshot for replies",
            side: Side::Baseline,
            rows: all(),
        },
    ]
}

/// Answers until the input ends.
pub fn serve() -> Result<(), Failure> {
    let (systems, calibration) = (systems(), Calibration::measure());
    let mut out = io::stdout().lock();
    writeln!(out, "{}", offer(&systems))?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let answer = match repetition(&systems, &line?, calibration) {
            Ok(value) => json!({ "value": value }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn offer(systems: &[System]) -> Value {
    let system = |system: &System| {
        json!({
            "name": system.name,
            "version": locked(system.package),
            "language": "Rust",
            "what": system.what,
            "rows": system.rows.iter().map(|(row, _)| row).collect::<Vec<_>>(),
        })
    };
    json!({ "systems": systems.iter().map(system).collect::<Vec<_>>(), "runtime": guard::COMPILER })
}

/// One repetition, as a line asks for it.
fn repetition(systems: &[System], line: &str, calibration: Calibration) -> Result<f64, Failure> {
    let asked: Value = serde_json::from_str(line)?;
    let text = |name| asked[name].as_str().ok_or_else(|| format!("{name} must be a text"));
    let (name, row) = (text("system")?, text("row")?);
    let messages = asked["messages"].as_u64().ok_or("messages must be a whole number")?;
    let system = systems.iter().find(|system| system.name == name);
    let system = system.ok_or_else(|| format!("no system {name}"))?;
    let own = system.rows.iter().find(|(offered, _)| *offered == row);
    let (_, own) = own.ok_or_else(|| format!("{name} does not offer {row}"))?;
    match *own {
        FULL => memory::full_as_compared(system.side),
        LATENCY => {
            let one_sender = Sleepers { senders: 1, ..Sleepers::keyed() };
            Ok(one_sender.prepare(messages, Threads::Two)(system.side)?.value)
        }
        own => {
            let row = ROWS.iter().find(|known| known.name == own);
            let row = row.ok_or_else(|| format!("no row {own}"))?;
            Ok(row.prepare(messages, Threads::Two, Some(calibration))?(system.side)?.value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> Result<f64, String> {
        let calibration = Calibration::measure();
        repetition(&systems(), line, calibration).map_err(|error| error.to_string())
    }

    #[test]
    fn every_row_that_is_offered_is_there() {
        for system in systems() {
            for (offered, own) in system.rows {
                assert!(ROWS.iter().any(|row| row.name == own), "{}: {offered}", system.name);
            }
        }
    }

    #[test]
    fn a_repetition_of_each_system_has_a_figure() {
        for (system, row) in [("greenroom", "A4"), ("greenroom", "D1"), ("tokio mpsc", "B-zipf")] {
            let line = json!({ "system": system, "row": row, "messages": 2_000 }).to_string();
            assert!(answer(&line).unwrap() > 0.0, "{system} {row}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_an_error() {
        let ask = |system, row| json!({ "system": system, "row": row, "messages": 1 }).to_string();
        assert_eq!(answer(&ask("none", "A4")), Err("no system none".to_owned()));
        let error = answer(&ask("greenroom", "W64")).unwrap_err();
        assert_eq!(error, "greenroom does not offer W64");
        assert_eq!(answer("{}"), Err("system must be a text".to_owned()));
        assert!(answer("A4").is_err());
    }
}
