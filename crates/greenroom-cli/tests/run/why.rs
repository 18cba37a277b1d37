//! `greenroom why`, and parked keys about which an operator decides.

use std::{fs::File, io::Write, process::Output};

use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    order::{Repeats, assert_all_in_order},
    server::{Answer, Server},
    stage::{Stage, event, lines},
};

fn text(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Events of the subjects `bad` and `good`, posted to a server; a generator keeps the run going.
fn stage(url: &str, retry: &str, pool: &str) -> (Stage, Vec<Value>) {
    let stage = Stage::with(&format!(
        "
inputs:
  i: {{ file: {{ path: in }} }}
  g: {{ generator: {{ rate: 20/s, types: [tick] }} }}
pools: {{ default: {{ workers: 4, {pool} }} }}
handlers:
  push: {{ on: test, order_by: subject, http: {{ url: '{url}', pass: true }}, retry: {{ {retry} }} }}
  ticks: {{ on: tick, order_by: subject, drop: }}
outputs: {{ done: {{ on: test, file: {{ path: done }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
"
    ));
    let one = |n: usize| {
        let subject = if n.is_multiple_of(3) { "good" } else { "bad/1 &2" };
        event(&format!("e{n}"), "test", subject, json!({ "n": n }))
    };
    let events: Vec<_> = (0..30).map(one).collect();
    stage.write_events("in", &events);
    (stage, events)
}

/// Refuses the events of the bad subject with this status, as long as it is told to.
fn refusing(status: u16) -> (Server, std::sync::Arc<std::sync::atomic::AtomicBool>) {
    let refuses = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let told = refuses.clone();
    let server = Server::start(move |_, request| {
        let bad = request.header("ce-subject").is_some_and(|subject| subject.contains("bad"));
        let refused = bad && told.load(std::sync::atomic::Ordering::SeqCst);
        Answer::Status(if refused { status } else { 204 }, "")
    });
    (server, refuses)
}

const BAD: &str = "bad/1 &2";

#[test]
fn c13_a_key_that_is_retried_says_what_it_waits_for() {
    let (server, _) = refusing(503);
    let (stage, _) = stage(&server.url, "attempts: 10, backoff: 30s..30s", "");
    let daemon = Daemon::start(&stage);
    let retried = |said: &String| said.starts_with("19 ") && said.contains("last error");
    let said = wait(|| Some(text(daemon.why(BAD))).filter(retried));
    // For example: 19 waiting; head attempt 1 of 10, next in 23.7 s, last error: http: 503 So
    // after 2 ms from http://...
    assert!(said.starts_with("19 waiting; head attempt 1 of 10, next in "), "{said}");
    assert!(
        said.contains(" s, last error: http: 503 ") && said.contains(" ms from http://"),
        "{said}"
    );
    wait(|| text(daemon.why("good")).contains("no event of `good` waits").then_some(()));
    let said = text(daemon.why("good"));
    assert!(said.contains(" waits or is in hand: none has come, or all are handled, "), "{said}");
    assert!(said.contains("`greenroom dead-letters list --key good 127."), "{said}");
    let path = "/api/keys?key=bad%2F1+%262";
    let line = daemon.get(path).1["lines"][0].clone();
    assert_eq!((&line["state"], &line["waiting"]), (&json!("retrying"), &json!(19)), "{line}");
    assert_eq!((&line["attempts"], &line["unsettled"]), (&json!(10), &json!(20)), "{line}");
    assert!(line["next_ms"].as_f64().unwrap() > 1_000.0, "{line}");
}

#[test]
fn c13_a_key_whose_event_is_in_hand_says_since_when() {
    let server = Server::start(|_, _| Answer::Never);
    let (stage, _) = stage(&server.url, "attempts: 2", "");
    let daemon = Daemon::start(&stage);
    let expected = "19 waiting; head attempt 1 of 2, in hand of worker ";
    wait(|| text(daemon.why(BAD)).starts_with(expected).then_some(()));
}

#[test]
fn c13_where_nobody_answers_it_says_what_to_do() {
    let stage = Stage::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = stage.command(&format!("why key {free}")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&free.to_string()) && said.contains("admin: { listen:"), "{said}");
    let server = Server::start(|_, _| Answer::Status(200, ""));
    let address = server.url.trim_start_matches("http://").trim_end_matches("/in").to_owned();
    let output = stage.command(&format!("why key {address}")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("not a greenroom"), "{said}");
}

/// A daemon with a parked key, once it is parked.
fn parked(stage: &Stage) -> Daemon<'_> {
    let daemon = Daemon::start(stage);
    let keys = daemon.wait_for("/api/keys", |keys| keys["parked"][0]["waiting"] == 19);
    let parked = &keys["parked"][0];
    assert_eq!((&parked["key"], &parked["handler"]), (&json!(BAD), &json!("push")), "{parked}");
    assert!(parked["last_error"].as_str().unwrap().contains("422"), "{parked}");
    let said = text(daemon.why(BAD));
    assert!(said.contains("parked for ") && said.contains("resume, skip or drop"), "{said}");
    daemon
}

const KEY: &str = "key=bad%2F1+%262&handler=push&event=e1";

#[test]
fn k08_a_parked_key_is_resumed_and_keeps_its_order() {
    let (server, refuses) = refusing(422);
    let (stage, events) = stage(&server.url, "attempts: 1", "on_final_failure: park");
    let daemon = parked(&stage);
    refuses.store(false, std::sync::atomic::Ordering::SeqCst);
    let (status, answer) = daemon.post(&format!("/api/keys/resume?{KEY}"));
    assert_eq!((status, &answer["decided"][0]["dead_letters"]), (200, &json!(0)), "{answer}");
    wait(|| (stage.read("done").len() == 30).then_some(()));
    assert_all_in_order(&events, &stage.read("done"), Repeats::None);
    assert!(stage.read("dead-letters.ndjson").is_empty());
}

#[test]
fn k08_a_parked_key_goes_on_without_the_event_that_is_skipped() {
    let (server, refuses) = refusing(422);
    let (stage, _) = stage(&server.url, "attempts: 1", "on_final_failure: park");
    let daemon = parked(&stage);
    refuses.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(daemon.post(&format!("/api/keys/skip?{KEY}")).0, 200);
    wait(|| (stage.read("done").len() == 29).then_some(()));
    let letters = wait(|| Some(stage.read("dead-letters.ndjson")).filter(|read| !read.is_empty()));
    assert_eq!((letters.len(), &letters[0]["event"]["id"]), (1, &json!("e1")));
    assert_eq!(letters[0]["reason"], "rejected");
}

#[test]
fn k08_all_that_waits_behind_a_parked_key_is_dropped_into_the_dead_letters() {
    let (server, _) = refusing(422);
    let (stage, _) = stage(&server.url, "attempts: 1", "on_final_failure: park");
    let daemon = parked(&stage);
    let (_, answer) = daemon.post(&format!("/api/keys/drop?{KEY}"));
    assert_eq!(answer["decided"][0]["dead_letters"], 20, "{answer}");
    let letters = wait(|| Some(stage.read("dead-letters.ndjson")).filter(|read| read.len() == 20));
    assert!(letters.iter().all(|letter| letter["reason"] == "dropped"), "{letters:?}");
    let error = letters[0]["error"].as_str().unwrap();
    assert!(error.contains("by an operator") && error.contains("422"), "{error}");
    assert_eq!(daemon.post(&format!("/api/keys/drop?{KEY}")).0, 404, "it is not parked any more");
    let report = daemon.stop().report();
    assert_eq!((&report["refused"], &report["out_of_order"]), (&json!(0), &json!(0)));
}

#[test]
fn u04_a_target_that_says_park_parks_the_key_whatever_the_pool_says() {
    let server = Server::start(|_, request| {
        let bad = request.header("ce-subject").is_some_and(|subject| subject.contains("bad"));
        if bad {
            Answer::Status(422, "greenroom-outcome: park\r\n")
        } else {
            Answer::Status(200, "")
        }
    });
    let (stage, _) = stage(&server.url, "attempts: 3", "");
    let daemon = parked(&stage);
    assert_eq!(
        server
            .requests
            .lock()
            .unwrap()
            .iter()
            .filter(|request| {
                request.header("ce-subject").is_some_and(|subject| subject.contains("bad"))
            })
            .count(),
        1,
        "one attempt"
    );
    drop(daemon);
}

#[test]
fn k08_health_says_that_a_key_is_parked_and_the_log_names_it() {
    let (server, refuses) = refusing(422);
    let (stage, _) = stage(&server.url, "attempts: 1", "on_final_failure: park");
    let daemon = parked(&stage);
    let said = |health: &Value| health["headline"] == "A key waits for a decision";
    let health = daemon.wait_for("/healthz", said);
    assert_eq!(health["health"], "yellow", "{health}");
    let figures = health["findings"][0]["figures"].as_str().unwrap();
    assert!(figures.contains("20 events wait"), "{health}");
    assert_eq!(daemon.get("/readyz").0, 200, "the others go on");
    let run = daemon.get("/api/run").1;
    assert_eq!((&run["parked_keys"], &run["parked_events"]), (&json!(1), &json!(20)), "{run}");
    refuses.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(daemon.post(&format!("/api/keys/resume?{KEY}")).0, 200);
    daemon.wait_for("/healthz", |health| health["health"] == "green");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("a key waits for an operator")).unwrap();
    for part in [BAD, "push", "id=\"e1\"", "422", "greenroom why KEY", "greenroom key resume"] {
        assert!(line.contains(part), "{part} is missing in {line}");
    }
}

#[test]
fn k08_an_input_that_parked_keys_hold_up_is_not_ready_until_somebody_decides() {
    let (server, _) = refusing(422);
    let stage = Stage::with(&format!(
        "
inputs:
  i: {{ file: {{ path: in }}, in_flight: 10KiB }}
  g: {{ generator: {{ rate: 20/s, types: [tick] }} }}
pools: {{ default: {{ on_final_failure: park }} }}
handlers:
  push: {{ on: test, order_by: subject, http: {{ url: '{}' }}, retry: {{ attempts: 1 }} }}
  ticks: {{ on: tick, drop: }}
admin: {{ listen: 127.0.0.1:0 }}
",
        server.url
    ));
    let bad =
        |n: usize| event(&format!("e{n}"), "test", &format!("bad-{n}"), json!("x".repeat(1_000)));
    stage.write_events("in", &(0..100).map(bad).collect::<Vec<_>>());
    let daemon = Daemon::start(&stage);
    let ready = daemon.wait_for("/readyz", |ready| ready["ready"] == false);
    let why = ready["reasons"][0].as_str().unwrap();
    assert!(why.contains("the input `i` is not read") && why.contains("parked keys"), "{ready}");
    let keys = daemon.get("/api/keys").1;
    for parked in keys["parked"].as_array().unwrap() {
        assert_eq!(daemon.decide("skip", parked["key"].as_str().unwrap()).0, 200);
    }
    wait(|| (stage.read("dead-letters.ndjson").len() > 5).then_some(()));
}

#[test]
fn c13_q11_a_key_of_a_paused_share_says_so_first_and_how_to_resume_it() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in, follow: true } } }
pools: { default: { workers: 2, share_by: /tenant, shares: { default: { in_hand: 1 } } } }
handlers: { h: { on: '**', order_by: subject, simulate: { latency: 1h, failures: 0 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 100ms }
",
    );
    let events = ["a", "b", "c"].map(|key| event(key, "t", key, json!({ "tenant": "acme" })));
    // The first has the share's only place before the others come.
    stage.write_events("in", &events[..1]);
    let daemon = Daemon::start(&stage);
    wait(|| text(daemon.why("a")).contains("in hand of worker").then_some(()));
    let file = File::options().append(true).open(stage.path("in"));
    file.unwrap().write_all(lines(&events[1..]).as_bytes()).unwrap();
    let full = "its share acme has as many events in hand as it may; 1 waiting; ";
    wait(|| text(daemon.why("c")).starts_with(full).then_some(()));
    assert_eq!(daemon.post("/api/pools/default/shares/acme/pause").0, 200);
    let said = text(daemon.why("c"));
    assert!(
        said.starts_with("its share acme is paused until it is resumed; 1 waiting; "),
        "{said}"
    );
    assert!(!said.contains("turn"), "{said}");
    assert!(said.contains("next: `greenroom share resume default acme 127."), "{said}");
    let said = text(daemon.why("acme"));
    assert!(said.starts_with("`acme` is no key, but a share of the pool `default`: share acme: 1 of 1 in hand; 2 waiting; paused"), "{said}");
    let health = daemon.wait_for("/healthz", |health| health["health"] == "yellow");
    assert_eq!(health["headline"], "The share `acme` of the pool `default` is paused by hand");
    let ready = daemon.get("/readyz");
    let reason = "The share `acme` of the pool `default` is paused by hand: 2 events of it wait";
    assert_eq!(ready, (200, json!({ "ready": true, "reasons": [reason] })));
}
