//! What a pool's configuration makes of it: sizes, order, what it tells.

use serde_json::{Value, json};

use crate::run::{
    order::{Repeats, assert_all_in_order},
    server::{Answer, Server},
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
    for (engine, ordered) in [("keyed", true), ("sticky", true), ("shared", false)] {
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

/// A stage whose handler posts to this server, with this pool.
fn posting(server: &Server, pool: &str, events: &[Value]) -> Stage {
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}
pools: {{ default: {{ {pool} }} }}
handlers:
  all: {{ on: '**', order_by: subject, http: {{ url: '{}', pass: true }} }}
outputs: {{ done: {{ file: {{ path: done.ndjson }} }} }}
",
        server.url
    ));
    stage.write_events("in.ndjson", events);
    stage
}

/// Takes everything but this event, which it will never take.
fn refusing(id: &'static str) -> Server {
    Server::start(move |_, request| match request.header("ce-id") == Some(id) {
        true => Answer::Status(404, ""),
        false => Answer::Status(204, ""),
    })
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["data"]["n"].as_u64().unwrap()).collect()
}

#[test]
fn k08_an_event_that_fails_for_good_is_skipped_or_parks_its_key() {
    let events = events(100);
    let server = refusing("e30");
    let skipping = posting(&server, "workers: 4, on_final_failure: skip", &events);
    skipping.run().counted(0, [100, 99, 1, 0]);

    let behind =
        |event: &Value| event["subject"] == "s0" && event["data"]["n"].as_u64() >= Some(30);
    let (parked, others): (Vec<Value>, Vec<Value>) = events.iter().cloned().partition(behind);
    let parking = posting(&server, "workers: 4, onFinalFailure: park", &events);
    let (handled, refused) = (others.len() as u64, parked.len() as u64);
    let run = parking.run();
    let report = run.counted(3, [100, handled, 0, refused]);
    assert_all_in_order(&others, &parking.read("done.ndjson"), Repeats::None);
    let expected = format!("{refused} events not handled, because of ");
    assert!(report["errors"][0].as_str().unwrap().contains(&expected), "{report}");
    assert!(run.stderr.contains("a key waits for an operator"), "{}", run.stderr);
}

#[test]
fn k08_a_run_whose_keys_are_all_parked_ends_and_says_so() {
    let server = Server::start(|_, _| Answer::Status(404, ""));
    let events: Vec<_> = (0..2_000)
        .map(|n| {
            crate::run::stage::event(
                &format!("e{n}"),
                "test",
                &format!("s{}", n % 10),
                json!({ "n": n }),
            )
        })
        .collect();
    let run = posting(&server, "workers: 4, on_final_failure: park", &events).run();
    let report = run.counted(3, [2_000, 0, 0, 2_000]);
    assert_eq!(report["parked"], 2_000, "{report}");
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("2,000 events not handled, because of 10 parked keys ("), "{error}");
}

#[test]
fn k08_more_events_behind_a_parked_key_than_may_wait_stop_no_other_key() {
    let mut events = events(2_000);
    // Three in four are of the key that is parked by its first event.
    let hot = |n: usize| n % 4 != 1;
    events.iter_mut().enumerate().filter(|(n, _)| hot(*n)).for_each(|(_, event)| {
        event["subject"] = "hot".into();
    });
    let others: Vec<_> = events.iter().filter(|event| event["subject"] != "hot").cloned().collect();
    let server = refusing("e0");
    let pool = "workers: 4, queue: 40, max_per_key: 10, on_final_failure: park";
    let stage = posting(&server, pool, &events);
    stage.run().counted(3, [2_000, 500, 0, 1_500]);
    assert_all_in_order(&others, &stage.read("done.ndjson"), Repeats::None);
}

#[test]
fn k08_an_event_that_fails_for_good_stops_the_pool_and_the_run_where_that_is_asked_for() {
    let server = refusing("e30");
    let stage = posting(&server, "workers: 4, on_final_failure: stop", &events(5_000));
    let report = stage.run().report();
    assert_eq!(report["dead_lettered"], 1);
    assert!(report["refused"].as_u64() > Some(0), "{report}");
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("the pool \"default\" has stopped"), "{report}");
    assert_eq!(report["errors"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(stage.read("dead-letters.ndjson")[0]["event"]["id"], "e30");
    let of_key = |event: &&Value| event["subject"] == "s0";
    let done = stage.read("done.ndjson");
    let done: Vec<_> = done.iter().filter(of_key).cloned().collect();
    assert!(numbers(&done).iter().all(|n| *n < 30), "nothing of the key comes after it");
}

#[test]
fn k10_a_key_at_its_bound_delays_no_other() {
    let mut events = events(120);
    events.iter_mut().enumerate().for_each(|(n, event)| {
        event["subject"] = if n < 60 { "hot".into() } else { format!("s{n}").into() };
    });
    let server = Server::start(|_, request| {
        if request.header("ce-subject") == Some("hot") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Answer::Status(204, "")
    });
    for (bound, of_others) in [("max_per_key: 2", true), ("max_per_key: 20", false)] {
        let stage = posting(&server, &format!("workers: 4, queue: 20, {bound}"), &events);
        stage.run().counted(0, [120, 120, 0, 0]);
        let done = stage.read("done.ndjson");
        assert_all_in_order(&events, &done, Repeats::None);
        let first_other = done.iter().position(|event| event["subject"] != "hot").unwrap();
        assert_eq!(first_other < 20, of_others, "{bound}: {first_other}");
    }
}

#[test]
fn r06_a_rate_holds_a_pool_back() {
    let stage = stage("workers: 32, rate: 100/s, limit: 4", &events(150));
    let run = stage.run();
    run.counted(0, [150, 150, 0, 0]);
    // A tenth of a second's worth at once, and the rest at 100 a second.
    assert!(run.took.as_secs_f64() > 1.2, "{:?}", run.took);
}
