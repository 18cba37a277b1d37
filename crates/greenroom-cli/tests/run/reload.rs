//! A configuration that is changed while it runs: by SIGHUP and through the admin listener.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, wait},
    stage::Stage,
};

const CONFIG: &str = "
inputs: { g: { generator: { rate: 200/s, keys: 50 } } }
pools: { default: { workers: 2, queue: 100 } }
handlers: { all: { on: '**', order_by: subject, pass: , retry: { attempts: 3 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 5s }
";

fn settings(daemon: &Daemon<'_>) -> (Value, Value, Value) {
    let pool = daemon.get("/api/pools/default").1["settings"].clone();
    let attempts = daemon.get("/api/handlers/all").1["attempts"].clone();
    (pool["workers"].clone(), pool["queue"].clone(), attempts)
}

#[test]
fn c09_sighup_changes_what_can_be_changed_and_names_the_rest() {
    let stage = Stage::with(CONFIG);
    let daemon = Daemon::start(&stage);
    assert_eq!(settings(&daemon), (json!(2), json!(100), json!(3)));
    let changed = CONFIG
        .replace("workers: 2, queue: 100", "workers: 5, queue: 50, on_full: reject")
        .replace("attempts: 3", "attempts: 7")
        .replace("200/s", "100/s");
    stage.write("greenroom.yaml", changed);
    daemon.signal(Signal::HUP);
    wait(|| daemon.log().contains("the configuration was read again").then_some(()));
    assert_eq!(settings(&daemon), (json!(5), json!(50), json!(7)));
    daemon.wait_for("/api/pools/default", |pool| pool["live"] == 5);
    let log = daemon.log();
    for left in ["pools.default.on_full", "inputs"] {
        let named = log.lines().any(|line| line.contains("left as it was") && line.contains(left));
        assert!(named, "{left} in\n{log}");
    }
    let run = daemon.stop();
    assert_eq!(run.report()["out_of_order"], 0, "{run:?}");
}

#[test]
fn c09_the_admin_listener_reloads_and_says_what_came_of_it() {
    let stage = Stage::with(CONFIG);
    let daemon = Daemon::start(&stage);
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!((status, answer), (200, json!({ "changed": [], "left": [] })));
    let more = CONFIG
        .replace("workers: 2", "workers: 3")
        .replace("pools: {", "pools: { extra: {},")
        .replace("order_by: subject", "order_by: id")
        .replace("pass: ,", "log: ,")
        .replace("deadline: 5s", "deadline: 6s");
    stage.write("greenroom.yaml", more);
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!((status, &answer["changed"]), (200, &json!(["pools.default.workers"])), "{answer}");
    let left: Vec<_> =
        answer["left"].as_array().unwrap().iter().map(|left| &left["what"]).collect();
    let expected = ["pools.extra", "handlers.all.order_by", "handlers.all.(its kind)", "shutdown"];
    assert_eq!(left, expected, "{answer}");
    let again = daemon.post("/api/reload").1;
    assert_eq!(again["changed"], json!([]), "what has changed holds: {again}");
    assert_eq!(again["left"], answer["left"], "what was left is named again: {again}");
}

#[test]
fn c09_rates_and_limits_change_where_there_were_any() {
    let text = CONFIG.replace("workers: 2,", "workers: 8, rate: 20/s, limit: 2,");
    let stage = Stage::with(&text);
    let daemon = Daemon::start(&stage);
    let pool = daemon.get("/api/pools/default").1;
    assert_eq!((&pool["rate_per_s"], &pool["limit"]), (&json!(20.0), &json!(2)), "{pool}");
    stage.write("greenroom.yaml", text.replace("20/s", "100/min").replace("limit: 2", "limit: 5"));
    let answer = daemon.post("/api/reload").1;
    let changed = json!(["pools.default.rate", "pools.default.limit"]);
    assert_eq!((&answer["changed"], &answer["left"]), (&changed, &json!([])), "{answer}");
    let pool = daemon.get("/api/pools/default").1;
    assert!((pool["rate_per_s"].as_f64().unwrap() - 100.0 / 60.0).abs() < 1e-9, "{pool}");
    assert_eq!(pool["limit"], 5, "{pool}");
    stage.write("greenroom.yaml", text.replace(", limit: 2", ""));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["pools.default.rate"]), "{answer}");
    assert_eq!(answer["left"][0]["what"], "pools.default.limit", "{answer}");
}

#[test]
fn c09_with_mistakes_the_old_one_goes_on_and_each_is_told() {
    let stage = Stage::with(CONFIG);
    let daemon = Daemon::start(&stage);
    let mistaken = CONFIG
        .replace("workers: 2, queue: 100", "workers: 9, queeu: 100")
        .replace("pass: ,", "pass: , pol: x,");
    stage.write("greenroom.yaml", mistaken);
    let (status, answer) = daemon.post("/api/reload");
    assert_eq!(status, 422, "{answer}");
    let error = &answer["error"];
    assert!(error["what"].as_str().unwrap().contains("2 errors"), "{error}");
    let details = error["details"].as_array().unwrap();
    assert_eq!(details[0]["where"], "greenroom.yaml:3:33", "{error}");
    assert!(details[0]["next"].as_str().unwrap().contains("`queue`"), "{error}");
    assert_eq!(settings(&daemon), (json!(2), json!(100), json!(3)), "nothing was changed");
    daemon.signal(Signal::HUP);
    wait(|| (daemon.log().matches("the old one holds").count() == 2).then_some(()));
    assert!(daemon.log().contains("unknown key `queeu`"), "{}", daemon.log());
    let before = daemon.get("/api/run").1["settled"].as_u64().unwrap();
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > before);
}
