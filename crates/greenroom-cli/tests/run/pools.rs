//! What a pool's configuration makes of it: sizes, order, what it tells.

use serde_json::Value;

use crate::{
    order::{Repeats, assert_all_in_order},
    stage::{Stage, events},
};

/// A stage whose handler takes its time, with this pool.
fn stage(pool: &str, events: &[Value]) -> Stage {
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}
pools: {{ default: {{ {pool} }} }}
handlers:
  all: {{ on: '**', order_by: subject, simulate: {{ latency: 0ms..5ms, failures: 0, seed: 1 }} }}
outputs: {{ done: {{ file: {{ path: done.ndjson }} }} }}
"
    ));
    stage.write_events("in.ndjson", events);
    stage
}

#[test]
fn h01_h02_every_spelling_of_a_pool_handles_everything_in_order() {
    let events = events(300);
    for pool in [
        "preset: edge",
        "preset: low_latency, engine: keyed, poolSize: 4, inboxSize: 3, maxRestarts: 0",
        "preset: ultra_throughput, queue: 1, enable_event_stream: false",
        "pool_size: 2, inbox_size: 1",
    ] {
        let stage = stage(pool, &events);
        stage.run().counted(0, [300, 300, 0, 0]);
        assert_all_in_order(&events, &stage.read("done.ndjson"), Repeats::None);
    }
}

#[test]
fn h02_a_preset_has_its_workers() {
    let stage = Stage::with(
        "
inputs: { i: { generator: { count: 1000, keys: 1000, zipf: 0 } } }
pools: { default: { preset: edge } }
handlers: { all: { on: '**', simulate: { latency: 100ms..100ms, failures: 0 } } }
",
    );
    let run = stage.run();
    run.counted(0, [1_000, 1_000, 0, 0]);
    // 1,000 at 100 ms each: 8 rounds of 128, and 100 s for one worker.
    assert!(run.took.as_secs() < 20, "{:?}", run.took);
}

#[test]
fn h11_the_engine_decides_whether_there_is_order() {
    let mut events = events(400);
    events.iter_mut().for_each(|event| event["subject"] = "one".into());
    for (engine, ordered) in [("keyed", true), ("shared", false)] {
        let stage = stage(&format!("workers: 16, engine: {engine}"), &events);
        let report = stage.run().counted(0, [400, 400, 0, 0]);
        assert_eq!(report["out_of_order"], 0, "without order nothing is out of it");
        let done = stage.read("done.ndjson");
        let ids =
            |events: &[Value]| events.iter().map(|event| event["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&done) == ids(&events), ordered, "{engine}");
        assert_eq!(done.len(), 400);
    }
}

#[test]
fn h01_without_the_event_stream_the_log_tells_nothing_of_the_pool() {
    for (told, setting) in [(true, "true"), (false, "false")] {
        let stage = stage(&format!("enable_event_stream: {setting}"), &events(1));
        let run = stage.run_with("--log-level info", b"");
        assert_eq!(run.stderr.contains("a pool has started"), told, "{}", run.stderr);
        run.counted(0, [1, 1, 0, 0]);
    }
}
