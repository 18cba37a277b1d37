//! `greenroom bench` as a user meets it: what it prints, that it adds up, and what it
//! refuses. Never how fast it was.

use std::process::{Command, Output};

use serde_json::Value;

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

/// The rows of a benchmark that ended well.
fn rows(args: &[&str]) -> Vec<Value> {
    let output = bench(&[args, &["--json"]].concat());
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "nothing but the figures");
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(outcome["cores"].as_u64().unwrap() > 0 && outcome["optimised"].is_boolean());
    outcome["rows"].as_array().unwrap().clone()
}

/// Events per second are events by seconds.
fn assert_adds_up(figures: &Value) {
    let [events, elapsed, rate] =
        ["events", "elapsed_s", "events_per_s"].map(|name| figures[name].as_f64().unwrap());
    assert!(events > 0.0 && elapsed > 0.0, "{figures}");
    assert!((events / elapsed / rate - 1.0).abs() < 1e-6, "{figures}");
}

#[test]
fn c06_a_bench_has_a_floor_without_an_engine_and_a_pool() {
    let rows = rows(&["--seconds", "0.2", "--workers", "8", "--keys", "100", "--work", "500ns"]);
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["no engine", "greenroom"]);
    rows.iter().for_each(assert_adds_up);
    assert_eq!((&rows[1]["workers"], &rows[1]["inbox"]), (&8.into(), &1_000.into()));
    let in_flight = rows[1]["peak_in_flight"].as_u64().unwrap();
    assert!(in_flight <= 8 * 1_000 + 8, "{in_flight}: more than fits, and one in each hand");
    assert!(rows.iter().all(|row| row["open_loop"].is_null() && row["memory_bytes"].is_null()));
}

#[test]
fn c06_a_rate_adds_latencies_of_arrivals_that_wait_for_nobody() {
    let rows = rows(&["--seconds", "0.3", "--rate", "2000/s", "--keys", "0", "--inbox", "10"]);
    for row in &rows {
        assert_adds_up(row);
        let open = &row["open_loop"];
        assert_adds_up(open);
        assert_eq!(open["rate"], 2_000.0);
        // A sender that is late has sent less, but none sends more than was drawn: 600 on average.
        assert!(open["events"].as_u64().unwrap() < 1_000, "{open}");
        let [p50, p99, p999] =
            ["p50_us", "p99_us", "p999_us"].map(|name| open[name].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{open}");
    }
}

#[test]
fn c06_h02_presets_are_measured_one_row_each_with_their_memory() {
    let rows =
        rows(&["--presets=edge,low_latency", "--seconds", "0.2", "--rate", "1000", "--keys", "50"]);
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["no engine", "edge", "low_latency"]);
    let sizes =
        rows.iter().map(|row| (row["workers"].as_u64().unwrap(), row["inbox"].as_u64().unwrap()));
    assert!(sizes.eq([(0, 0), (128, 200), (256, 100)]));
    for row in &rows {
        assert_adds_up(row);
        assert_adds_up(&row["open_loop"]);
    }
    if cfg!(target_os = "linux") {
        for row in &rows[1..] {
            let payload = 25_600 * 200;
            assert!(row["memory_bytes"].as_u64().unwrap() >= payload, "{row}");
        }
    }
}

#[test]
fn c06_for_people_there_is_a_table() {
    let output = bench(&["--seconds", "0.1", "--workers", "2", "--rate", "500", "--keys", "10"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in
        ["as fast as it goes, 0.10 s", "500 arrive a second", "no engine", "2 x 1,000", "p999"]
    {
        assert!(table.contains(part), "no `{part}`: {table}");
    }
    assert!(!table.contains('\x1b'), "{table}");
}

#[test]
fn c06_values_that_make_no_sense_are_told() {
    for (args, said) in [
        (&["--workers", "0"][..], "1..=65536"),
        (&["--keys", "many"], "--keys"),
        (&["--zipf", "-1"], "--zipf"),
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
