//! Handlers and outputs that take events by what is in them (C21).

use serde_json::json;

use crate::run::stage::{Stage, event};

fn stage(rest: &str) -> Stage {
    let stage = Stage::with(&format!("inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}\n{rest}"));
    let of = |n: u32| {
        let region = if n.is_multiple_of(2) { "eu" } else { "us" };
        event(&format!("e{n}"), "order.paid", &format!("s{n}"), json!({ "n": n, "region": region }))
    };
    let mut events: Vec<_> = (0..10).map(of).collect();
    let mut text = event("text", "order.paid", "s", json!("n"));
    text["datacontenttype"] = "text/plain".into();
    events.push(text);
    stage.write_events("in.ndjson", &events);
    stage
}

fn ids(stage: &Stage, file: &str) -> Vec<String> {
    let events = stage.read(file);
    let mut ids: Vec<_> =
        events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn c21_handlers_and_outputs_take_events_by_what_is_in_them() {
    let stage = stage(
        "
handlers:
  large: { on: order.paid, where: { /n: { at_least: 7 } }, pass: {} }
  rest: { on: order.paid, drop: {} }
outputs:
  eu: { where: { /region: eu, subject: { present: true } }, file: { path: eu.ndjson } }
  other: { file: { path: other.ndjson } }
",
    );
    stage.run().counted(0, [11, 11, 0, 0]);
    assert_eq!(ids(&stage, "eu.ndjson"), ["e8"]);
    assert_eq!(ids(&stage, "other.ndjson"), ["e7", "e9"]);
}

#[test]
fn c21_of_a_member_that_is_there_twice_the_last_one_counts_and_that_is_said_once() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in.ndjson } } }
handlers: { h: { on: '**', where: { /n: 2 }, order_by: /n, pass: {} } }
outputs: { o: { file: { path: done.ndjson } } }
",
    );
    let line = |id: u32| {
        let head = format!(r#"{{"specversion":"1.0","id":"{id}","source":"s","type":"t""#);
        format!("{head},\"data\":{{\"n\":\"hunter2\",\"n\":2}}}}\n")
    };
    stage.write("in.ndjson", (0..10).map(line).collect::<String>());
    let run = stage.run();
    run.counted(0, [10, 10, 0, 0]);
    assert_eq!(run.stderr.matches("is there twice").count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
}

#[test]
fn c21_an_event_that_no_condition_takes_ends_as_handler_rejected_says() {
    let with = |option: &str| {
        stage(&format!(
            "{option}\nhandlers: {{ some: {{ on: '**', where: {{ /n: {{ in: [1, 2, 3] }}, subject: s2 }}, drop: }} }}\n"
        ))
    };
    let refused = with("");
    refused.run().counted(0, [11, 1, 10, 0]);
    let letters = refused.read("dead-letters.ndjson");
    assert!(letters.iter().all(|letter| letter["reason"] == "handler_rejected"), "{letters:?}");
    with("handler_rejected: ignore").run().counted(0, [11, 1, 0, 0]);
}

#[test]
fn c21_a_dry_run_counts_by_what_is_in_events() {
    let stage = stage(
        "
handlers: { some: { on: '**', where: { /n: { less: 4 } }, order_by: subject, drop: } }
",
    );
    let output = stage.command("run greenroom.yaml --dry-run").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("rejected       7 (63.6%): as `handler_rejected` says"), "{text}");
    assert!(text.contains("4 keys;"), "{text}");
}
