//! What an input may have under way (D03, Z11), as an operator sets and sees it.

use std::fmt::Write;

use serde_json::json;

use crate::run::{
    daemon::Daemon,
    stage::{Stage, event, events, lines},
};

const MIB: usize = 1 << 20;

/// Events of a KiB around one of 20 MiB.
fn with_huge() -> Stage {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in, max_event: 32MiB }, in_flight: 64MiB } }
pools: { default: { workers: 8 } }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 1ms..1ms, failures: 0, seed: 1 } } }
outputs: { done: { file: { path: done } } }
",
    );
    let small = |n: usize| event(&n.to_string(), "t", &n.to_string(), json!("x".repeat(1_024)));
    let mut text = lines(&(0..500).map(small).collect::<Vec<_>>());
    let huge = "x".repeat(20 * MIB);
    writeln!(
        text,
        r#"{{"specversion":"1.0","id":"huge","source":"s","type":"t","data":"{huge}"}}"#
    )
    .unwrap();
    text.push_str(&lines(&(500..1_000).map(small).collect::<Vec<_>>()));
    stage.write("in", text);
    stage
}

#[test]
fn z11_a_huge_event_passes_among_others_or_alone() {
    let stage = with_huge();
    for in_flight in ["64MiB", "8MiB"] {
        let run = stage.run_with(&format!("--set inputs.i.in_flight={in_flight}"), b"");
        let report = run.counted(0, [1_001, 1_001, 0, 0]);
        let peak = report["peak_in_flight_bytes"].as_u64().unwrap() as usize;
        assert!((20 * MIB..22 * MIB).contains(&peak), "{report}");
    }
}

#[test]
fn z11_or_is_rejected_where_it_is_larger_than_its_input_takes() {
    let stage = with_huge();
    let report =
        stage.run_with("--set inputs.i.file.max_event=16MiB", b"").counted(0, [1_001, 1_000, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"], json!({"too_large": 1}));
    let stored = std::fs::metadata(stage.path("dead-letters.ndjson")).unwrap().len();
    assert!((21 << 20..22 << 20).contains(&stored), "the first 16 MiB of it: {stored}");
}

#[test]
fn d03_an_input_that_pauses_shows_it() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in }, run_ahead: 20 }, other: { file: { path: other }, in_flight: 2KiB } }
pools: { default: { workers: 2, queue: 4 }, free: { workers: 1 } }
handlers:
  hang: { on: 'test.happened', exec: { command: [sleep, '3600'], timeout: 1h } }
  parked: { on: 'other', pool: free, exec: { command: [sleep, '3600'], timeout: 1h } }
admin: { listen: 127.0.0.1:0 }
",
    );
    stage.write_events("in", &events(200));
    let large = |n: usize| event(&n.to_string(), "other", "s", json!("x".repeat(1_024)));
    stage.write_events("other", &(0..10).map(large).collect::<Vec<_>>());
    let daemon = Daemon::start(&stage);
    let run = daemon.wait_for("/api/run", |run| {
        run["inputs"][0]["state"] == "paused" && run["inputs"][1]["in_flight_bytes"] != 0
    });
    let (first, second) = (&run["inputs"][0], &run["inputs"][1]);
    assert_eq!(first["files_at_risk"], 0, "none that is followed waits for a descriptor: {run}");
    assert_eq!((&first["run_ahead"], &first["in_flight"]), (&json!(20), &json!(64 * MIB)), "{run}");
    assert!(first["held_back"].as_u64().unwrap() >= 20, "{run}");
    assert_eq!(second["in_flight"], 2_048, "{run}");
    assert!(second["in_flight_bytes"].as_u64().unwrap() <= 2_048, "one of 1 KiB fits, two do not");
    assert_eq!(run["dead_letters_open"], 0, "{run}");
    daemon.stop();
}

#[test]
fn c02_bounds_out_of_range_are_told_with_their_place() {
    let stage = Stage::with(
        "
inputs:
  i: { file: { path: in }, run_ahead: 0, in_flight: 12 }
handlers: { all: { on: '**', drop: } }
",
    );
    stage.write_events("in", &events(1));
    let run = stage.run();
    assert_eq!(run.code, 2, "{run:?}");
    for what in ["run_ahead", "in_flight", "greenroom.yaml:3:"] {
        assert!(run.stderr.contains(what), "{what}: {}", run.stderr);
    }
}
