//! What is said once and holds for many: a buffer for all pools, order and retries for the
//! handlers of a pool, all outputs.

use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
    stage::{Stage, event, events},
};

fn ids(events: &[Value]) -> Vec<Value> {
    events.iter().map(|event| event["id"].clone()).collect()
}

#[test]
fn r06_a_pools_order_holds_for_handlers_that_name_none() {
    let mut events = events(300);
    events.iter_mut().for_each(|event| event["subject"] = "one".into());
    for (pool, handler, ordered) in [
        ("order_by: subject", "", true),
        ("order_by: subject", "order_by: id,", false),
        ("order_by: subject", "order_by: none,", false),
        ("order_by: id", "order_by: subject,", true),
    ] {
        let stage = Stage::with(&format!(
            "
inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}
pools: {{ default: {{ workers: 16, {pool} }} }}
handlers:
  all: {{ on: '**', {handler} simulate: {{ latency: 0ms..5ms, failures: 0, seed: 1 }} }}
outputs: {{ done: {{ file: {{ path: done.ndjson }} }} }}
"
        ));
        stage.write_events("in.ndjson", &events);
        stage.run().counted(0, [300, 300, 0, 0]);
        let done = stage.read("done.ndjson");
        assert_eq!(ids(&done) == ids(&events), ordered, "{pool} {handler}");
    }
}

#[test]
fn r06_a_pools_retry_holds_for_what_its_handlers_do_not_say() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in.ndjson } } }
pools: { default: { retry: { attempts: 2, backoff: 1ms..1ms } } }
handlers:
  a: { on: a, simulate: { latency: 0ms..0ms, failures: 1 } }
  b: { on: b, retry: { attempts: 4 }, simulate: { latency: 0ms..0ms, failures: 1 } }
",
    );
    stage.write_events("in.ndjson", &["a", "b"].map(|ty| event(ty, ty, "s", json!(1))));
    let run = stage.run();
    run.counted(0, [2, 0, 2, 0]);
    let letters = stage.read("dead-letters.ndjson");
    let attempts = |id: &str| {
        let letter = letters.iter().find(|letter| letter["event"]["id"] == id).unwrap();
        letter["attempts"].clone()
    };
    assert_eq!((attempts("a"), attempts("b")), (json!(2), json!(4)));
    // The usual backoff would have taken more than half a second.
    assert!(run.took.as_millis() < 500, "{:?}", run.took);
}

const DAEMON: &str = "
inputs: { g: { generator: { rate: 100/s } } }
buffer: 70
pools: { p: { retry: { attempts: 2 } }, q: { queue: 30 } }
handlers:
  all: { on: '**', pool: p, pass: {} }
  own: { on: own, pool: p, retry: { attempts: 3 }, pass: {} }
  other: { on: other, pool: q, pass: {} }
outputs: { o: { file: { path: o } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 5s }
";

#[test]
fn r01_r02_a_buffer_and_the_retries_of_a_pool_change_while_it_runs() {
    let stage = Stage::with(DAEMON);
    let daemon = Daemon::start(&stage);
    let queues = || {
        ["default", "p", "q"]
            .map(|name| daemon.get(&format!("/api/pools/{name}")).1["settings"]["queue"].clone())
    };
    let attempts = || {
        ["all", "own", "other"]
            .map(|name| daemon.get(&format!("/api/handlers/{name}")).1["attempts"].clone())
    };
    assert_eq!((queues(), attempts()), ([70, 70, 30].map(Value::from), [2, 3, 5].map(Value::from)));
    let changed = DAEMON
        .replace("buffer: 70", "buffer: 90\nall_outputs: true")
        .replace("attempts: 2", "attempts: 7");
    stage.write("greenroom.yaml", changed);
    let answer = daemon.post("/api/reload").1;
    let changed = answer["changed"].as_array().unwrap();
    for what in ["pools.default.queue", "pools.p.queue", "pools.p.retry", "handlers.all.retry"] {
        assert!(changed.contains(&what.into()), "{what} in {answer}");
    }
    assert_eq!(changed.len(), 4, "{answer}");
    let left = answer["left"].as_array().unwrap();
    assert!(left.len() == 1 && left[0]["what"] == "all_outputs", "{answer}");
    assert_eq!((queues(), attempts()), ([90, 90, 30].map(Value::from), [7, 3, 5].map(Value::from)));
    assert_eq!(daemon.post("/api/reload").1["changed"], json!([]), "what has changed holds");
    daemon.stop().report();
}

#[test]
fn g01_the_first_output_gets_an_event_unless_all_do() {
    for (all, expected) in [("", [60, 40, 0]), ("all_outputs: true\n", [60, 100, 60])] {
        let stage = Stage::with(&format!(
            "
inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}
{all}handlers: {{ all: {{ on: '**', pass: {{}} }} }}
outputs:
  first: {{ on: [a, 'a.*'], file: {{ path: first }} }}
  second: {{ file: {{ path: second }} }}
  third: {{ on: a, file: {{ path: third }} }}
"
        ));
        let mut given = events(100);
        for (n, event) in given.iter_mut().enumerate() {
            event["type"] = if n < 60 { "a".into() } else { "b".into() };
        }
        stage.write_events("in.ndjson", &given);
        stage.run().counted(0, [100, 100, 0, 0]);
        let counts = ["first", "second", "third"].map(|file| stage.read(file).len());
        assert_eq!(counts, expected, "{all}");
    }
}
