//! The `http` handler: targets that take events, refuse them, hang, or are away.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use serde_json::{Value, json};

use crate::run::{
    order::{Repeats, assert_all_in_order},
    server::{Answer, Server},
    stage::{Run, Stage, events},
};

/// Runs these events against a URL.
fn post(stage: &Stage, url: &str, events: &[Value], options: &str, rest: &str) -> Run {
    set(stage, url, events, options, rest);
    stage.run()
}

fn set(stage: &Stage, url: &str, events: &[Value], options: &str, rest: &str) {
    stage.write_events("in", events);
    stage.write(
        "greenroom.yaml",
        format!(
            "
inputs: {{ i: {{ file: {{ path: in }} }} }}
pools: {{ default: {{ workers: 8 }} }}
handlers:
  h:
    on: '**'
    order_by: subject
    http: {{ url: '{url}', pass: true, {options} }}
    retry: {{ attempts: 3, backoff: 1ms..5ms }}
outputs: {{ done: {{ file: {{ path: done }} }} }}
{rest}
"
        ),
    );
}

#[test]
fn u01_events_are_posted_in_both_modes_and_in_order() {
    let events = events(200);
    for mode in ["binary", "structured"] {
        let server = Server::start(|_, _| Answer::Status(204, ""));
        let stage = Stage::new();
        let run = post(&stage, &server.url, &events, &format!("mode: {mode}"), "");
        run.counted(0, [200, 200, 0, 0]);
        assert_all_in_order(&events, &stage.read("done"), Repeats::None);
        let requests = server.requests.lock().unwrap();
        let posted: Vec<Value> = match mode {
            "structured" => {
                requests.iter().map(|r| serde_json::from_slice(&r.body).unwrap()).collect()
            }
            _ => requests
                .iter()
                .map(|r| {
                    json!({
                        "id": r.header("ce-id"),
                        "subject": r.header("ce-subject"),
                        "data": serde_json::from_slice::<Value>(&r.body).unwrap(),
                    })
                })
                .collect(),
        };
        assert_all_in_order(&events, &posted, Repeats::None);
        assert!(posted.iter().all(|event| event["data"]["n"].is_u64()));
    }
}

#[test]
fn u04_some_500s_are_tried_again_and_their_key_waits() {
    let failed = Mutex::new(HashSet::new());
    let server = Server::start(move |_, request| {
        let id = request.header("ce-id").unwrap_or_default().to_owned();
        let fails = id.ends_with('5') && failed.lock().unwrap().insert(id);
        Answer::Status(if fails { 500 } else { 200 }, "")
    });
    let stage = Stage::new();
    let events = events(100);
    let report = post(&stage, &server.url, &events, "", "").counted(0, [100, 100, 0, 0]);
    assert!(report["retried"] == 10, "{report}");
    assert_all_in_order(&events, &stage.read("done"), Repeats::None);
}

#[test]
fn u04_a_target_that_always_answers_500_to_one_event_gets_it_dead_lettered() {
    let server = Server::start(|_, request| {
        Answer::Status(if request.header("ce-id") == Some("e5") { 500 } else { 200 }, "")
    });
    let stage = Stage::new();
    let events = events(30);
    let report = post(&stage, &server.url, &events, "", "").counted(0, [30, 29, 1, 0]);
    assert_eq!(report["dead_letters_by_reason"]["retries_exhausted"], 1);
    let letter = &stage.read("dead-letters.ndjson")[0];
    assert_eq!((&letter["event"], &letter["attempts"]), (&events[5], &json!(3)));
    assert!(letter["error"].as_str().unwrap().contains("500"), "{letter}");
}

#[test]
fn what_a_target_has_handled_twice_is_within_what_the_report_says() {
    for (half, counts) in
        [("", 0), ("ce-specversion: 1.0\r\nce-id: x\r\nce-source: s\r\nce-type: t\r\n", 99)]
    {
        let seen = Mutex::new(HashSet::new());
        let server = Server::start(move |_, request| {
            let id = request.header("ce-id").unwrap_or_default().to_owned();
            let first = seen.lock().unwrap().insert(id);
            if first { Answer::Half(half) } else { Answer::Status(200, "") }
        });
        let (stage, events) = (Stage::new(), events(99));
        // Apart from each other: an outage would have no end to wait for.
        let run = post(&stage, &server.url, &events, "", "outage: { failures: 1000, window: 1h }");
        let report = run.counted(0, [99, 99, 0, 0]);
        assert_eq!(report["repeated_at_most"], counts, "{report}");
        let handled = server.requests.lock().unwrap().len() as u64;
        assert_eq!(handled, 99 + counts);
    }
}

#[test]
fn u01_events_go_where_the_configuration_says_whatever_proxy_the_environment_names() {
    let server = Server::start(|_, _| Answer::Status(204, ""));
    let stage = Stage::new();
    set(&stage, &server.url, &events(3), "", "");
    let mut command = stage.command("run greenroom.yaml --report json");
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, Server::refusing());
    }
    let started = std::time::Instant::now();
    Run::of(command.output().unwrap(), started).counted(0, [3, 3, 0, 0]);
}

#[test]
fn u04_404_is_a_dead_letter_at_once() {
    let server = Server::start(|_, _| Answer::Status(404, ""));
    let stage = Stage::new();
    let report = post(&stage, &server.url, &events(10), "", "").counted(0, [10, 0, 10, 0]);
    assert_eq!(report["dead_letters_by_reason"]["rejected"], 10);
    assert_eq!(server.requests.lock().unwrap().len(), 10, "no event is posted twice");
    assert!(stage.read("dead-letters.ndjson")[0]["error"].as_str().unwrap().contains("404"));
}

/// Nothing is blamed on the events, and the run ends when its patience does.
fn assert_outage(run: &Run, says: &str) {
    let report = run.counted(3, [10, 0, 0, 10]);
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("in outage") && error.contains(says), "{error}");
    assert!(run.took < Duration::from_secs(6), "{run:?}");
}

/// Short enough for a test; long enough that ten events on eight workers fail three times in a row.
const SOON: &str = "outage: { failures: 3, limit: 400ms }";

#[test]
fn d09_a_target_that_refuses_connections_is_an_outage() {
    let stage = Stage::new();
    let run = post(&stage, &Server::refusing(), &events(10), "", SOON);
    assert_outage(&run, "refused");
    assert!(!stage.path("dead-letters.ndjson").exists());
}

#[test]
fn d09_a_target_that_answers_500_for_good_is_an_outage() {
    let server = Server::start(|_, _| Answer::Status(500, ""));
    assert_outage(&post(&Stage::new(), &server.url, &events(10), "", SOON), "500");
}

#[test]
fn d09_a_target_that_answers_401_pauses_at_once() {
    let server = Server::start(|_, _| Answer::Status(401, ""));
    let patient = "outage: { failures: 1000, limit: 400ms }";
    assert_outage(&post(&Stage::new(), &server.url, &events(10), "", patient), "401");
}

#[test]
fn d09_a_target_that_hangs_is_an_outage() {
    let server = Server::start(|_, _| Answer::Never);
    assert_outage(&post(&Stage::new(), &server.url, &events(10), "timeout: 100ms", SOON), "100ms");
}

#[test]
fn d09_a_target_that_comes_back_gets_every_event() {
    let server = Server::start(|n, _| Answer::Status(if n < 4 { 503 } else { 200 }, ""));
    let stage = Stage::new();
    let events = events(50);
    set(&stage, &server.url, &events, "", "outage: { failures: 3 }");
    // One at a time, so that exactly three failures in a row begin the outage and one probe fails.
    let run = stage.run_with("--set pools.default.workers=1", b"");
    run.counted(0, [50, 50, 0, 0]);
    assert_all_in_order(&events, &stage.read("done"), Repeats::None);
    assert!(
        run.stderr.contains("in outage") && run.stderr.contains("works again"),
        "{}",
        run.stderr
    );
}
