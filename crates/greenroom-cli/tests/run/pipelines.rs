//! From inputs through pools to outputs, where nothing goes wrong but what is simulated.

use std::io::Write;

use serde_json::json;

use crate::run::{
    order::{Repeats, assert_all_in_order},
    stage::{Stage, event, events, lines},
};

const ORDERED: &str = "
pools: { default: { workers: 64 } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done.ndjson } } }
";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

#[test]
fn b01_plain_gzip_and_zstd_come_out_once_and_in_order_per_subject() {
    let events = events(3_000);
    let plain = lines(&events).into_bytes();
    for (name, bytes) in
        [("in.ndjson", plain.clone()), ("in.ndjson.gz", gzip(&plain)), ("in.zst", zstd(&plain))]
    {
        let stage =
            Stage::with(&format!("inputs: {{ i: {{ file: {{ path: {name} }} }} }}{ORDERED}"));
        stage.write(name, bytes);
        let report = stage.run().counted(0, [3_000, 3_000, 0, 0]);
        assert_eq!(report["outputs"][0]["events"], 3_000);
        let done = stage.read("done.ndjson");
        assert_all_in_order(&events, &done, Repeats::None);
        let mut expected = events[0].clone();
        expected["greenroompool"] = json!("default");
        expected["greenroomattempt"] = json!(1);
        let found = done.iter().find(|event| event["id"] == "e0").unwrap();
        assert_eq!(*found, expected, "c12: the event as it came, and who handled it");
        assert!(done.iter().all(|e| e["greenroompool"] == "default"));
        assert!(!stage.path("dead-letters.ndjson").exists(), "no letter, no file");
    }
}

#[test]
fn b01_standard_input_is_read() {
    let stage = Stage::with(&format!("inputs: {{ i: {{ file: {{ path: '-' }} }} }}{ORDERED}"));
    let events = events(500);
    stage.run_with("", &gzip(lines(&events).as_bytes())).counted(0, [500, 500, 0, 0]);
    assert_all_in_order(&events, &stage.read("done.ndjson"), Repeats::None);
}

#[test]
fn b05_a_second_run_appends_unless_the_file_is_truncated() {
    let stage = Stage::with(&format!("inputs: {{ i: {{ file: {{ path: in }} }} }}{ORDERED}"));
    stage.write_events("in", &events(10));
    stage.run().counted(0, [10, 10, 0, 0]);
    stage.run().counted(0, [10, 10, 0, 0]);
    assert_eq!(stage.read("done.ndjson").len(), 20);
    stage.run_with("--set outputs.done.file.truncate=true", b"").counted(0, [10, 10, 0, 0]);
    assert_eq!(stage.read("done.ndjson").len(), 10);
}

#[test]
fn b04_a_generator_makes_what_it_was_asked_for_and_the_same_twice() {
    let generator = "inputs: { g: { generator: { count: 1000, keys: 20, types: [a.x, b.y] } } }";
    let stage = Stage::with(&format!("{generator}{ORDERED}"));
    stage.run().counted(0, [1_000, 1_000, 0, 0]);
    let first = stage.read("done.ndjson");
    stage.run_with("--set outputs.done.file.truncate=true", b"").counted(0, [1_000, 1_000, 0, 0]);
    assert_all_in_order(&first, &stage.read("done.ndjson"), Repeats::None);
    let share = first.iter().filter(|event| event["type"] == "a.x").count();
    assert!((400..600).contains(&share), "{share} of 1000 are one of two types");
}

#[test]
fn r01_r03_named_pools_get_what_their_handlers_are_named_for() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in.ndjson } } }
pools: { erp: { workers: 5 }, default: { workers: 2 } }
handlers:
  exact:   { on: price.changed, pool: erp, pass: }
  one:     { on: 'price.*', pass: }
  several: { on: [stock.low, 'order.**'], pool: erp, pass: }
  dropped: { on: debug.noise, drop: }
outputs:
  prices: { on: 'price.*', file: { path: prices.ndjson } }
  rest:   { file: { path: rest.ndjson } }
no_handler: ignore
",
    );
    let of = |id: &str, ty: &str| event(id, ty, "s", json!(null));
    stage.write_events(
        "in.ndjson",
        &[
            of("1", "price.changed"),
            of("2", "price.removed"),
            of("3", "price.removed.twice"),
            of("4", "order.placed.abroad"),
            of("5", "stock.low"),
            of("6", "debug.noise"),
        ],
    );
    let report = stage.run().counted(0, [6, 5, 0, 0]);
    assert_eq!(report["ignored"], 1, "no pattern covers price.removed.twice");
    let seen = |file: &str| {
        let mut seen: Vec<_> = stage
            .read(file)
            .iter()
            .map(|e| {
                format!("{} {}", e["id"].as_str().unwrap(), e["greenroompool"].as_str().unwrap())
            })
            .collect();
        seen.sort();
        seen
    };
    assert_eq!(seen("prices.ndjson"), ["1 erp", "2 default"]);
    assert_eq!(seen("rest.ndjson"), ["4 erp", "5 erp"]);
}

#[test]
fn r06_an_event_without_a_handler_is_a_dead_letter_ignored_or_refused() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
handlers: { h: { on: wanted, pass: } }
",
    );
    stage.write_events("in", &events(3));
    let report = stage.run().counted(0, [3, 0, 3, 0]);
    assert_eq!(report["dead_letters_by_reason"]["no_handler"], 3);
    assert_eq!(stage.read("dead-letters.ndjson")[0]["event"]["id"], "e0");
    let ignored = stage.run_with("--set no_handler=ignore", b"").counted(0, [3, 0, 0, 0]);
    assert_eq!(ignored["ignored"], 3);
    stage.run_with("--set no_handler=refuse", b"").counted(3, [3, 0, 0, 3]);
}

#[test]
fn d02_failures_are_tried_again_and_the_order_of_their_key_holds() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 64 } }
handlers:
  all:
    on: '**'
    order_by: subject
    simulate: { latency: 0ms..1ms, failures: 0.05, seed: 7 }
    retry: { attempts: 10, backoff: 1ms..5ms }
outputs: { done: { file: { path: done.ndjson } } }
",
    );
    let events = events(1_000);
    stage.write_events("in", &events);
    let report = stage.run().counted(0, [1_000, 1_000, 0, 0]);
    assert!(report["retried"].as_u64().unwrap() > 10, "{report}");
    let done = stage.read("done.ndjson");
    assert_all_in_order(&events, &done, Repeats::None);
    let again = done.iter().filter(|event| event["greenroomattempt"].as_u64() > Some(1)).count();
    assert!(again > 10, "{again} events say that they were tried again");
}

#[test]
fn d06_an_event_that_fails_every_time_is_a_dead_letter_and_the_next_of_its_key_goes_on() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 0ms..0ms, failures: 1 }, retry: { attempts: 3, backoff: 1ms..1ms } } }
outage: { failures: 1000 }
",
    );
    stage.write_events("in", &events(20));
    let report = stage.run().counted(0, [20, 0, 20, 0]);
    assert_eq!(report["dead_letters_by_reason"]["retries_exhausted"], 20);
    assert_eq!(report["retried"], 40);
    let letters = stage.read("dead-letters.ndjson");
    assert!(letters.iter().all(|letter| letter["attempts"] == 3 && letter["handler"] == "all"));
    assert!(letters[0]["error"].as_str().unwrap().contains("simulate"));
}

#[test]
fn u03_log_writes_every_event_to_the_log() {
    let stage =
        Stage::with("inputs: { i: { file: { path: in } } }\nhandlers: { l: { on: '**', log: } }");
    stage.write_events("in", &events(3));
    let run = stage.run_with("--log json", b"");
    run.counted(0, [3, 3, 0, 0]);
    let logged: Vec<serde_json::Value> =
        run.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(logged.iter().filter(|line| line.to_string().contains("test.happened")).count(), 3);
}

#[test]
fn r05_a_full_pool_makes_its_events_wait_or_refuses_or_dead_letters_them() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 1, queue: 2 } }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 5ms..5ms, failures: 0 } } }
",
    );
    stage.write_events("in", &events(40));
    stage.run().counted(0, [40, 40, 0, 0]);
    let rejects = stage.run_with("--set pools.default.on_full=reject", b"");
    let report = rejects.report();
    assert_eq!((rejects.code, report["refused"].as_u64() > Some(20)), (3, true), "{report}");
    let letters = stage.run_with("--set pools.default.on_full=dead_letter", b"");
    let report = letters.report();
    assert_eq!((letters.code, &report["refused"]), (0, &json!(0)), "{report}");
    assert!(report["dead_letters_by_reason"]["pool_full"].as_u64() > Some(20), "{report}");
}

#[test]
fn two_inputs_share_the_pools_and_each_keeps_its_order() {
    let stage = Stage::with(&format!(
        "inputs: {{ a: {{ file: {{ path: a }} }}, b: {{ file: {{ path: b }} }} }}{ORDERED}"
    ));
    let (even, odd): (Vec<_>, Vec<_>) =
        events(1_000).into_iter().partition(|event| event["data"]["n"].as_u64().unwrap() % 2 == 0);
    stage.write_events("a", &even);
    stage.write_events("b", &odd);
    stage.run().counted(0, [1_000, 1_000, 0, 0]);
    let (even_done, odd_done): (Vec<_>, Vec<_>) = stage
        .read("done.ndjson")
        .into_iter()
        .partition(|event| event["data"]["n"].as_u64().unwrap() % 2 == 0);
    assert_all_in_order(&even, &even_done, Repeats::None);
    assert_all_in_order(&odd, &odd_done, Repeats::None);
}
