//! Layers around handlers, as a configuration names them (R07).

use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
    server::{Answer, Server},
    stage::{Run, Stage, event, events},
};

/// A stage that reads `in.ndjson` into one handler with these options.
fn stage(handler: &str, events: &[Value]) -> Stage {
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}
pools: {{ default: {{ workers: 8 }} }}
handlers: {{ h: {{ on: '**', {handler} }} }}
outputs: {{ done: {{ file: {{ path: done.ndjson }} }} }}
"
    ));
    stage.write_events("in.ndjson", events);
    stage
}

/// What the layers have told in the log, the outermost first.
fn figures(run: &Run) -> Vec<Value> {
    let lines = run.stderr.lines().filter_map(|line| line.split_once("figures="));
    lines.map(|(_, json)| serde_json::from_str(json).unwrap()).collect()
}

#[test]
fn r07_data_that_does_not_fit_its_schema_is_a_dead_letter_that_says_why() {
    let stage = stage("layers: [{ validation: { 'order.*': order.json } }], pass: {}", &[]);
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    stage.write("order.json", schema.to_string());
    let given = [
        event("good", "order.created", "s", json!({ "n": 1 })),
        event("wrong", "order.created", "s", json!({ "n": "one" })),
        event("missing", "order.changed", "s", json!({})),
        event("other", "price.changed", "s", json!("anything")),
    ];
    stage.write_events("in.ndjson", &given);
    stage.run().counted(0, [4, 2, 2, 0]);
    let mut done: Vec<_> =
        stage.read("done.ndjson").iter().map(|event| event["id"].to_string()).collect();
    done.sort_unstable();
    assert_eq!(done, ["\"good\"", "\"other\""]);
    let letters = stage.read("dead-letters.ndjson");
    for (id, said) in [("wrong", "/n: "), ("missing", "\"n\" is a required property")] {
        let letter = letters.iter().find(|letter| letter["event"]["id"] == id).unwrap();
        assert_eq!((&letter["reason"], &letter["attempts"]), (&json!("rejected"), &json!(1)));
        assert!(letter["error"].as_str().unwrap().contains(said), "{letter}");
    }
}

#[test]
fn r07_the_first_layer_is_the_outermost() {
    let handler = "layers: [metrics, { timeout: 20ms }, metrics], retry: { attempts: 2, backoff: 1ms..1ms }, \
                   simulate: { latency: 10s..10s, failures: 0 }";
    let stage = stage(handler, &events(3));
    let run = stage.run();
    run.counted(0, [3, 0, 3, 0]);
    let [outer, inner] = &figures(&run)[..] else { panic!("{}", run.stderr) };
    let counts = |figures: &Value| {
        ["begun", "timed_out", "cancelled"].map(|name| figures[name].as_u64().unwrap())
    };
    assert_eq!(counts(outer), [6, 6, 0], "outside of the limit an attempt timed out: {outer}");
    assert_eq!(counts(inner), [6, 0, 6], "inside of it, it was cancelled: {inner}");
}

#[test]
fn r07_a_rate_holds_for_all_workers() {
    let run = stage("layers: [{ rate: 50/s }], pass: {}", &events(40)).run();
    run.counted(0, [40, 40, 0, 0]);
    assert!(run.took.as_secs_f64() > 0.65, "{:?}", run.took);
}

#[test]
fn r07_an_event_that_was_acknowledged_is_not_handled_again() {
    let mut given = events(50);
    given.extend(events(50));
    let stage = stage("order_by: subject, layers: [deduplication], pass: {}", &given);
    let run = stage.run();
    run.counted(0, [100, 100, 0, 0]);
    assert_eq!(stage.read("done.ndjson").len(), 50);
    assert_eq!(figures(&run)[0]["skipped"], 50);
}

#[test]
fn r07_a_flow_begins_where_an_event_has_no_correlation_id() {
    let mut given = events(2);
    given[1]["correlationid"] = "flow".into();
    let stage = stage("order_by: source, layers: [correlation], pass: {}", &given);
    stage.run().counted(0, [2, 2, 0, 0]);
    let done = stage.read("done.ndjson");
    let ids: Vec<_> = done.iter().map(|event| &event["correlationid"]).collect();
    assert_eq!(ids, ["e0", "flow"]);
}

#[test]
fn r07_what_a_handler_logs_stands_in_the_span_of_its_attempt() {
    for (layers, spans) in [("layers: [tracing],", true), ("", false)] {
        let run = stage(&format!("{layers} log: {{}}"), &events(1)).run();
        run.counted(0, [1, 1, 0, 0]);
        let line = run.stderr.lines().find(|line| line.contains("id=\"e0\"")).unwrap();
        let span = "event{type=\"test.happened\" id=\"e0\" source=\"/test\" pool=\"default\" handler=\"h\"";
        assert_eq!(line.contains(span), spans, "{}", run.stderr);
    }
}

#[test]
fn r07_handlers_that_call_one_system_share_its_circuit_breaker() {
    let server = Server::start(|_, _| Answer::Status(500, ""));
    let handler = |on: &str| {
        format!(
            "{on}: {{ on: {on}, retry: {{ attempts: 1000, backoff: 1ms..1ms }}, http: {{ url: '{}' }},
    layers: [{{ circuit_breaker: {{ shared: erp, failures: 3, open_for: 1h }} }}, metrics] }}",
            server.url
        )
    };
    let text = format!(
        "
inputs: {{ g: {{ generator: {{ rate: 200/s, types: [a, b] }} }} }}
handlers:
  {}
  {}
admin: {{ listen: 127.0.0.1:0 }}
shutdown: {{ deadline: 1s }}
",
        handler("a"),
        handler("b")
    );
    let stage = Stage::with(&text);
    let daemon = Daemon::start(&stage);
    let layer = |name: &str, place: usize| {
        daemon.get(&format!("/api/handlers/{name}")).1["layers"][place].clone()
    };
    for name in ["a", "b"] {
        daemon.wait_for(&format!("/api/handlers/{name}"), |handler| {
            handler["layers"][0]["state"] == "open"
        });
        let circuit = layer(name, 0);
        assert_eq!((&circuit["layer"], &circuit["opened"]), (&json!("circuit_breaker"), &json!(1)));
    }
    daemon.wait_for("/api/run", |run| run["taken"].as_u64() > Some(50));
    assert_eq!(server.requests.lock().unwrap().len(), 3, "one worker, and three failures");
    let failed =
        layer("a", 1)["failed"].as_u64().unwrap() + layer("b", 1)["failed"].as_u64().unwrap();
    assert_eq!(failed, 3);
    stage.write("greenroom.yaml", text.replace("failures: 3", "failures: 4"));
    let answer = daemon.post("/api/reload").1;
    let left: Vec<_> =
        answer["left"].as_array().unwrap().iter().map(|left| &left["what"]).collect();
    assert_eq!(left, ["handlers.a.layers", "handlers.b.layers"], "{answer}");
    daemon.stop().report();
}
