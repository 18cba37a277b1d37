//! One verdict, and the commands that act on it (O14, O15, C22).

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering::SeqCst},
};

use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
    server::{Answer, Server},
    stage::Stage,
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
