//! `greenroom bench` as a user meets it: what it prints, that it adds up, and what it
//! refuses. Never how fast it was.

use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.arg("bench").args(args).env_remove("RUST_LOG").output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The rows of a benchmark that ended well, in their columns.
fn rows(args: &[&str]) -> Vec<Vec<String>> {
    let output = bench(args);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "nothing but the figures");
    let (heading, table) = text(&output.stdout).split_once("\n\n").unwrap();
    assert!(heading.contains(" cores, "), "{heading}");
    let mut lines = table.lines().map(|line| {
        let cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(lines.next().unwrap(), ["pool", "workers x inbox", "messages/s", "p99", "memory"]);
    lines.collect()
}

/// Throughput above none, a time and a size, each with its unit.
fn assert_measured(row: &[String]) {
    assert!(row[2].replace(',', "").parse::<u64>().unwrap() > 0, "{row:?}");
    assert!(row[3].ends_with('s') || row[3] == "overrun", "{row:?}");
    assert!(row[4].ends_with("iB") || row[4] == "-", "{row:?}");
}

#[test]
fn c06_a_pool_is_measured_by_throughput_p99_and_memory() {
    let row = rows(&["--seconds", "0.2", "--workers", "8", "--keys", "100", "--work", "500ns"]);
    assert_eq!((row.len(), row[0][1].as_str()), (1, "8 x 1,000"));
    assert_measured(&row[0]);
    let unordered = rows(&["--seconds", "0.2", "--rate", "2000/s", "--keys", "0"]);
    assert_measured(&unordered[0]);
}

#[test]
fn c06_a_rate_that_is_too_high_is_told_and_no_p99_is_made_up() {
    let row = rows(&["--seconds", "0.2", "--work", "1ms", "--rate", "90000", "--workers", "1"]);
    assert_eq!(row[0][3], "overrun");
}

#[test]
fn c06_h02_presets_are_measured_one_row_each() {
    let rows =
        rows(&["--presets=edge,low_latency", "--seconds", "0.2", "--rate", "1000", "--keys", "50"]);
    let sizes: Vec<_> = rows.iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
    assert_eq!(sizes, [("edge", "128 x 200"), ("low_latency", "256 x 100")]);
    rows.iter().for_each(|row| assert_measured(row));
}

#[test]
fn c06_values_that_make_no_sense_are_told() {
    for (args, said) in [
        (&["--workers", "0"][..], "1..=65536"),
        (&["--keys", "many"], "--keys"),
        (&["--work", "5"], "with its unit"),
        (&["--rate", "0"], "messages per second"),
        (&["--seconds", "0"], "0.1 to 3600 seconds"),
        (&["--presets", "--workers", "3"], "cannot be used with"),
        (&["--presets=edge,fast"], "no preset `fast`; there are low_latency, "),
    ] {
        let output = bench(args);
        assert_eq!((code(&output), text(&output.stdout)), (2, ""), "{args:?}");
        assert!(text(&output.stderr).contains(said), "{args:?}: {}", text(&output.stderr));
    }
}
