//! Which handler an event goes to, and what becomes of it elsewhere (R03, R08, R09, G03).

use serde_json::{Value, json};

use crate::run::stage::{Stage, event};

/// Ten events of two sources in turn.
fn events() -> Vec<Value> {
    let of = |n: u32| {
        let mut event = event(&format!("e{n}"), "order.paid", &format!("s{n}"), json!({ "n": n }));
        event["source"] = if n.is_multiple_of(2) { "/eu/shop" } else { "/us/shop" }.into();
        event
    };
    (0..10).map(of).collect()
}

fn stage(rest: &str) -> Stage {
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in.ndjson }} }} }}
outputs: {{ done: {{ file: {{ path: done.ndjson }} }} }}
{rest}
"
    ));
    stage.write_events("in.ndjson", &events());
    stage
}

#[test]
fn r03_a_match_chooses_and_the_next_less_specific_handler_gets_the_rest() {
    let stage = stage(
        "handlers:
  eu: { on: order.paid, match: { source: '/eu/*' }, pass: {} }
  rest: { on: 'order.*', drop: {} }",
    );
    stage.run().counted(0, [10, 10, 0, 0]);
    let done = stage.read("done.ndjson");
    assert_eq!(done.len(), 5);
    assert!(done.iter().all(|event| event["source"] == "/eu/shop"));
}

#[test]
fn r08_what_every_match_refuses_ends_as_the_option_says() {
    let with = |option: &str| {
        stage(&format!(
            "{option}
handlers: {{ eu: {{ on: '**', match: {{ source: '/eu/*', subject: 's*' }}, pass: {{}} }} }}"
        ))
    };
    let stage = with("");
    stage.run().counted(0, [10, 5, 5, 0]);
    let letters = stage.read("dead-letters.ndjson");
    assert!(letters.iter().all(|letter| letter["reason"] == "handler_rejected"));
    with("handler_rejected: ignore").run().counted(0, [10, 5, 0, 0]);
    with("handler_rejected: refuse").run().counted(3, [10, 5, 0, 5]);
}

#[test]
fn r03_fan_out_hands_an_event_to_more_than_one_handler() {
    let stage = stage(
        "handlers:
  main: { on: order.paid, pass: {}, ack: on_success }
  beside: { on: '**', fan_out: true, pass: {} }
  eu: { on: order.paid, fan_out: true, matcher: { source: '/eu/*' }, pass: {} }",
    );
    stage.run().counted(0, [10, 10, 0, 0]);
    assert_eq!(stage.read("done.ndjson").len(), 25);
}

#[test]
fn g03_more_than_a_handler_declares_does_not_come_back_in() {
    let stage = stage(
        "loopback: { on: 'order.*' }
handlers: { h: { on: '**', retry: { attempts: 2, backoff: 1ms..2ms, total: 1h }, pass: {} } }",
    );
    stage.run().counted(0, [10, 0, 10, 0]);
    let letters = stage.read("dead-letters.ndjson");
    let error = "1 event would come back in, and its handler declares 0";
    assert!(letters.iter().all(|letter| letter["error"] == error && letter["attempts"] == 2));
}

#[test]
fn r06_a_timeout_of_a_pool_ends_an_attempt() {
    let stage = stage(
        "pools: { default: { timeout: 20ms, workers: 10 } }
handlers: { h: { on: '**', retry: { attempts: 1 }, simulate: { latency: 10s..10s, failures: 0 } } }",
    );
    let run = stage.run();
    run.counted(0, [10, 0, 10, 0]);
    assert!(run.took.as_secs() < 8, "{:?}", run.took);
}

#[test]
fn r01_what_cannot_be_routed_is_found_before_the_run() {
    let wrong = |handlers: &str| {
        let stage = stage(handlers);
        let run = stage.run();
        assert_eq!(run.code, 2, "{run:?}");
        run.stderr
    };
    let names = "handlers: { h: { on: a, match: { Subject: x }, pass: {} } }";
    assert!(wrong(names).contains("`Subject` is not the name of an attribute"));
    let nothing = "handlers: { h: { on: a, match: { subject: '' }, pass: {} } }";
    assert!(wrong(nothing).contains("no value matches this"));
    let back = "handlers: { h: { on: a, loopback: 2, pass: {} } }";
    assert!(wrong(back).contains("nothing comes back in"));
    let small = "loopback: { on: b, room: 1 }\nhandlers: { h: { on: a, loopback: 2, pass: {} } }";
    assert!(wrong(small).contains("there is room for only 1 event"));
    let twice =
        "handlers: { g: { on: a, pass: {} }, h: { on: a, match: { subject: x }, pass: {} } }";
    assert!(wrong(twice).contains("`a` is taken by the handler `g` already"));
}
