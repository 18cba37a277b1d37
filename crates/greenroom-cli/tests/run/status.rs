//! One verdict, and the commands that act on it (O14, O15, C22).

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering::SeqCst},
};

use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
    scrape::Scrape,
    server::{Answer, Server},
    stage::{Stage, event},
};

/// A command against a daemon: its exit code and what it prints.
fn say(stage: &Stage, daemon: &Daemon<'_>, command: &str) -> (i32, String) {
    let output = stage.command(command).arg(&daemon.address).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn o14_o15_c22_an_output_that_rejects_is_the_root_and_commands_mend_it() {
    let answers = Arc::new(AtomicU16::new(401));
    let told = answers.clone();
    let server = Server::start(move |_, _| Answer::Status(told.load(SeqCst), ""));
    let stage = Stage::with(&format!(
        "
inputs: {{ shop: {{ generator: {{ rate: 2000/s, keys: 50 }}, run_ahead: 50 }} }}
pools: {{ billing: {{ workers: 8, queue: 20 }} }}
handlers: {{ bills: {{ on: '**', order_by: subject, pool: billing, pass: }} }}
outputs: {{ ledger: {{ http: {{ url: '{}', mode: batch }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        server.url
    ));
    let daemon = Daemon::start(&stage);
    let chain = |health: &Value| -> Value {
        let found = health["findings"].as_array().unwrap().iter();
        found.map(|of| json!([of["severity"], of["about"], of["follows"]])).collect()
    };
    let expected = json!([
        ["critical", "outputs.ledger", null],
        ["warning", "pools.billing", "outputs.ledger"],
        ["warning", "inputs.shop", "pools.billing"],
    ]);
    let health = daemon.wait_for("/healthz", |health| chain(health) == expected);
    assert_eq!(
        (&health["health"], &health["headline"]),
        (&json!("red"), &json!("The output `ledger` is paused"))
    );

    let (code, said) = say(&stage, &daemon, "status");
    assert_eq!(code, 3, "{said}");
    for part in [
        "red: The output `ledger`",
        "greenroom output resume ledger",
        "-> Workers of the pool `billing` wait",
    ] {
        assert!(said.contains(part), "{part} is missing in {said}");
    }
    answers.store(200, SeqCst);
    let (code, said) = say(&stage, &daemon, "output resume ledger");
    assert!(code == 0 && said.contains("changed: true"), "{said}");
    daemon.wait_for("/healthz", |health| health["health"] == "green");
    assert_eq!(say(&stage, &daemon, "status").0, 0);

    for what in
        ["pool pause billing", "pool resume billing", "handler pause bills", "handler resume bills"]
    {
        let (code, said) = say(&stage, &daemon, what);
        let paused = what.contains("pause");
        assert!(code == 0 && said.contains(&format!("paused: {paused}")), "{what}: {said}");
    }
    let (code, said) = say(&stage, &daemon, "pool resize --workers 9 billing");
    assert!(code == 0 && said.contains("workers: 9"), "{said}");
    assert_eq!(daemon.get("/api/pools/billing").1["workers"], 9);
    assert_eq!(say(&stage, &daemon, "reload").0, 0);
    let (code, said) = say(&stage, &daemon, "key skip nobody");
    assert!(code == 1 && said.contains("`nobody` is not parked"), "{said}");

    // It looks once a second.
    let over = "over: The output `ledger` is paused";
    let past = daemon.wait_for("/api/history", |past| past["marks"].to_string().contains(over));
    let marks: Vec<_> = past["marks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mark| mark["text"].as_str().unwrap())
        .collect();
    for text in ["The output `ledger` is paused", "POST /api/pools/billing/workers?count=9"] {
        assert!(marks.contains(&text), "{text} is missing in {marks:?}");
    }
    assert!(!marks.iter().any(|mark| mark.contains("nobody")), "it was refused: {marks:?}");
    let settled = past["all"]["settled_per_s"].as_array().unwrap();
    assert!(settled.iter().any(|rate| rate.as_f64().is_some_and(|rate| rate > 0.0)), "{settled:?}");
    drop(daemon);
}

#[test]
fn o14_p18_a_program_that_crashes_is_told_with_its_exit_code_and_its_stderr() {
    let stage = Stage::with(
        "
inputs: { shop: { generator: { rate: 50/s, keys: 50 } } }
handlers: { bills: { on: '**', order_by: subject, exec: { command: [sh, -c, 'echo no database >&2; exit 3'] } } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let daemon = Daemon::start(&stage);
    let headline = "The program of the handler `bills` does not work";
    let health = daemon.wait_for("/healthz", |health| health["headline"] == headline);
    let found = &health["findings"][0];
    assert_eq!((&found["kind"], &found["severity"]), (&json!("crash_loop"), &json!("critical")));
    let figures = found["figures"].as_str().unwrap();
    assert!(figures.contains("exit status: 3") && figures.contains("no database"), "{found}");
    let handler = daemon.get("/api/handlers/bills").1;
    assert_eq!(handler["state"], "broken", "{handler}");
    let metrics = Scrape::of(&daemon).text;
    let series = "greenroom_finding_seconds{kind=\"crash_loop\",severity=\"critical\",about=\"handlers.bills\"}";
    assert!(metrics.contains(series), "{metrics}");
    let crashes = metrics.lines().find(|line| line.starts_with("greenroom_handler_crashes_total"));
    assert!(!crashes.unwrap().ends_with(" 0"), "{crashes:?}");
    drop(daemon);
}

#[test]
fn o16_c22_a_decision_shows_its_event_and_is_refused_for_another() {
    let server = Server::start(|_, _| Answer::Status(422, ""));
    let stage = Stage::with(&format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }}, g: {{ generator: {{ rate: 1/s, types: [tick] }} }} }}
pools: {{ default: {{ on_final_failure: park }} }}
handlers:
  push: {{ on: order, order_by: subject, http: {{ url: '{}' }}, retry: {{ attempts: 1 }} }}
  ticks: {{ on: tick, drop: }}
dead_letters: {{ store: {{ mask: [/data/card] }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        server.url
    ));
    let of = |id: &str, key: &str| event(id, "order", key, json!({ "card": "4111", "sum": 7 }));
    let all = [of("e1", "a"), of("e2", "a"), of("e3", "b"), of("e4", "c"), of("e5", "d")];
    stage.write_events("in", &all);
    let daemon = Daemon::start(&stage);
    let keys = daemon.wait_for("/api/keys", |keys| keys["parked"].as_array().unwrap().len() == 4);
    let of_a = keys["parked"].as_array().unwrap().iter().find(|of| of["key"] == "a").unwrap();
    assert_eq!(of_a["event"], json!({ "id": "e1", "type": "order", "attempt": 1 }));
    let shown = daemon.get("/api/keys?key=a").1["lines"][0]["event"].clone();
    assert_eq!((&shown["id"], &shown["subject"]), (&json!("e1"), &json!("a")));
    let data = shown["data"].as_str().unwrap();
    assert!(
        data.contains("\"sum\": 7") && data.contains("***") && !data.contains("4111"),
        "{data}"
    );

    // Two have looked at the same event: the second decision is about one that is gone.
    assert_eq!(daemon.post("/api/keys/skip?key=a&event=e1").0, 200);
    daemon.wait_for("/api/keys?key=a", |key| key["lines"][0]["event"]["id"] == "e2");
    let (status, answer) = daemon.post("/api/keys/skip?key=a&event=e1");
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"]["what"].as_str().unwrap().contains("e2"), "{answer}");

    let (code, said) = say(&stage, &daemon, "key skip a");
    assert!(code == 1 && said.contains("\"sum\": 7") && said.contains("--event e2"), "{said}");
    let (code, said) = say(&stage, &daemon, "key skip --event e1 a");
    assert!(code == 1 && said.contains("nothing was decided"), "{said}");
    assert_eq!(say(&stage, &daemon, "key skip --event e2 a").0, 0);

    let group = of_a["group"].as_str().unwrap();
    let path = format!("/api/keys/decide-all?decision=skip&group={group}");
    daemon.wait_for("/api/keys", |keys| keys["parked"].as_array().unwrap().len() == 3);
    let (status, answer) = daemon.post(&path);
    assert_eq!((status, &answer["error"]["details"]["keys"]), (409, &json!(3)), "{answer}");
    let (status, answer) = daemon.post(&format!("{path}&confirm=3"));
    assert_eq!((status, answer), (200, json!({ "keys": 3, "dead_letters": 3 })));
    daemon.wait_for("/api/keys", |keys| keys["parked"] == json!([]));

    let listed =
        daemon.wait_for("/api/dead-letters?order=newest", |page| page["totals"]["letters"] == 5);
    assert_eq!(listed["letters"][4]["id"], "e1", "{listed}");
    let found = daemon.get("/api/dead-letters?event=e2").1;
    assert_eq!(
        (&found["totals"]["letters"], &found["letters"][0]["key"]),
        (&json!(1), &json!("a"))
    );
    let page = daemon.get("/api/dead-letters?order=newest&limit=2").1;
    let next = daemon.get(page["next"].as_str().unwrap()).1;
    let numbers = |page: &Value| -> Vec<u64> {
        page["letters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| of["number"].as_u64().unwrap())
            .collect()
    };
    assert_eq!((numbers(&page), numbers(&next)), (vec![5, 4], vec![3, 2]));
    drop(daemon);
}

#[test]
fn o16_many_times_as_many_workers_are_asked_about() {
    let stage = Stage::with(
        "
inputs: { g: { generator: { rate: 1/s } } }
pools: { default: { workers: 8 } }
handlers: { h: { on: '**', drop: } }
admin: { listen: 127.0.0.1:0 }
",
    );
    let daemon = Daemon::start(&stage);
    let (status, answer) = daemon.post("/api/pools/default/workers?count=400");
    let details = json!({ "workers": 8, "asked": 400 });
    assert_eq!((status, &answer["error"]["details"]), (409, &details), "{answer}");
    let (code, said) = say(&stage, &daemon, "pool resize --workers 400 default");
    assert!(code == 1 && said.contains("--yes"), "{said}");
    assert_eq!(daemon.post("/api/pools/default/workers?count=60").0, 200, "a few are no slip");
    assert_eq!(say(&stage, &daemon, "pool resize --workers 400 --yes default").0, 0);
    assert_eq!(daemon.get("/api/pools/default").1["workers"], 400);
    drop(daemon);
}

#[test]
fn c22_the_key_of_a_worker_that_hangs_is_named() {
    let stage = Stage::with(
        "
inputs: { all: { file: { path: in, follow: true } } }
pools: { default: { workers: 4 } }
handlers: { hangs: { on: '**', order_by: subject, simulate: { latency: 1h, failures: 0 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0, metrics: { wedged_after: 1s } }
shutdown: { deadline: 100ms }
",
    );
    stage.write_events("in", &[event("1", "t", "order 7", json!({}))]);
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/healthz", |health| health["health"] != "green");
    let (code, said) = say(&stage, &daemon, "status");
    assert!(code == 3 && said.contains(", with the key `order 7`; 0 events wait"), "{said}");
}
