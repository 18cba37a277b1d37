//! A configuration that is changed while it runs: by SIGHUP and through the admin listener.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    stage::{Stage, event},
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
    for left in ["pools.default.on_full", "inputs.g"] {
        let named = log.lines().any(|line| line.contains("left unchanged") && line.contains(left));
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
fn c09_rates_and_limits_change_come_and_go() {
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
    assert_eq!((&answer["changed"], &answer["left"]), (&changed, &json!([])), "{answer}");
    let limits = || {
        let pool = daemon.get("/api/pools/default").1;
        (pool["rate_per_s"].clone(), pool["limit"].clone())
    };
    assert_eq!(limits(), (json!(20.0), json!(null)));
    stage.write("greenroom.yaml", CONFIG.replace("workers: 2,", "workers: 8,"));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["pools.default.rate"]), "{answer}");
    assert_eq!(limits(), (json!(null), json!(null)));
    stage.write("greenroom.yaml", &text);
    let answer = daemon.post("/api/reload").1;
    assert_eq!((&answer["changed"], &answer["left"]), (&changed, &json!([])), "{answer}");
    assert_eq!(limits(), (json!(20.0), json!(2)));
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
    wait(|| (daemon.log().matches("the old one stays in effect").count() == 2).then_some(()));
    assert!(daemon.log().contains("unknown key `queeu`"), "{}", daemon.log());
    let before = daemon.get("/api/run").1["settled"].as_u64().unwrap();
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > before);
}

/// The ids of what a file holds.
fn ids(stage: &Stage, file: &str) -> Vec<String> {
    stage.read(file).iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

fn changes(answer: &Value) -> Vec<&str> {
    answer["changed"].as_array().unwrap().iter().map(|what| what.as_str().unwrap()).collect()
}

fn left<'a>(answer: &'a Value, what: &str) -> &'a str {
    let left = answer["left"].as_array().unwrap();
    let found = left.iter().find(|left| left["what"] == what);
    found.unwrap_or_else(|| panic!("{what} in {answer}"))["why"].as_str().unwrap()
}

#[test]
fn c09_g01_inputs_and_outputs_appear_and_go_and_nothing_is_lost() {
    let stage = Stage::with(CONFIG);
    let daemon = Daemon::start(&stage);
    wait(|| (ids(&stage, "done").len() > 20).then_some(()));
    // A file beside the generator, and an output of its own for what is in it: before the
    // one that takes everything.
    let events: Vec<_> =
        (0..50).map(|n| event(&format!("e{n}"), "paid", "s", json!({ "n": n }))).collect();
    stage.write_events("more", &events);
    let more = CONFIG
        .replace("inputs: {", "inputs: { more: { file: { path: more } },")
        .replace("outputs: {", "outputs: { paid: { on: paid, file: { path: paid } },");
    stage.write("greenroom.yaml", &more);
    let answer = daemon.post("/api/reload").1;
    assert_eq!(changes(&answer), ["outputs.paid (added)", "inputs.more (added)"], "{answer}");
    assert_eq!(answer["left"], json!([]), "{answer}");
    wait(|| (ids(&stage, "paid").len() == 50).then_some(()));
    assert!(ids(&stage, "done").iter().all(|id| !id.starts_with('e')), "the first output wins");
    // What was added is gone again, and the output of all else is another one.
    let other = CONFIG.replace("done: { file: { path: done }", "rest: { file: { path: rest }");
    stage.write("greenroom.yaml", &other);
    let answer = daemon.post("/api/reload").1;
    let expected = [
        "outputs.rest (added)",
        "outputs.paid (removed)",
        "outputs.done (removed)",
        "inputs.more (removed)",
    ];
    assert_eq!((changes(&answer), &answer["left"]), (expected.to_vec(), &json!([])), "{answer}");
    wait(|| (daemon.log().matches("the output has ended").count() == 2).then_some(()));
    wait(|| daemon.log().contains("the input has ended").then_some(()));
    wait(|| (ids(&stage, "rest").len() > 20).then_some(()));
    // The same name again, with a new file.
    stage.write(
        "greenroom.yaml",
        more.replace("done: {", "rest: { file: { path: rest } }, done: {"),
    );
    let answer = daemon.post("/api/reload").1;
    assert!(changes(&answer).contains(&"inputs.more (added)"), "{answer}");
    wait(|| (ids(&stage, "paid").len() == 100).then_some(()));
    let run = daemon.stop();
    let report = run.report();
    let stored: usize = ["done", "paid", "rest"].iter().map(|file| ids(&stage, file).len()).sum();
    assert_eq!(report["handled"], stored, "{report}");
    let row = |of: &str, name: &str, sum: &str| -> (u64, u64) {
        let rows = report[of].as_array().unwrap().iter().filter(|row| row["name"] == name);
        rows.fold((0, 0), |(count, of), row| (count + 1, of + row[sum].as_u64().unwrap()))
    };
    assert_eq!(row("inputs", "more", "taken"), (2, 100), "{report}");
    assert_eq!(row("outputs", "paid", "events"), (2, 100), "{report}");
    assert_eq!(row("outputs", "rest", "events").1, ids(&stage, "rest").len() as u64, "{report}");
}

#[test]
fn c09_what_cannot_come_or_go_is_named_and_the_rest_goes_on() {
    let stage = Stage::with(CONFIG);
    let daemon = Daemon::start(&stage);
    // Another name for the same file, other settings under the same name.
    let renamed = CONFIG
        .replace("done: { file: { path: done } }", "stored: { file: { path: ./done } }")
        .replace("keys: 50", "keys: 51");
    stage.write("greenroom.yaml", &renamed);
    let answer = daemon.post("/api/reload").1;
    assert_eq!(changes(&answer), [""; 0], "{answer}");
    assert!(left(&answer, "outputs.stored").contains("is written by `outputs.done`"), "{answer}");
    assert!(left(&answer, "outputs.done").contains("but continues"), "{answer}");
    assert!(left(&answer, "inputs.g").contains("before the start"), "{answer}");
    // A new input that cannot be read, and nothing else to read.
    let stdin =
        CONFIG.replace("g: { generator: { rate: 200/s, keys: 50 } }", "h: { file: { path: '-' } }");
    stage.write("greenroom.yaml", &stdin);
    let answer = daemon.post("/api/reload").1;
    assert!(left(&answer, "inputs.h").contains("standard input"), "{answer}");
    assert!(left(&answer, "inputs.g").contains("the run would end"), "{answer}");
    // An output that cannot be opened is a mistake: nothing changes.
    let nowhere = CONFIG
        .replace("outputs: {", "outputs: { x: { on: x, file: { path: nowhere/x } },")
        .replace("workers: 2", "workers: 3");
    stage.write("greenroom.yaml", &nowhere);
    assert_eq!(daemon.post("/api/reload").0, 422);
    assert_eq!(settings(&daemon).0, json!(2));
    let before = daemon.get("/api/run").1["settled"].as_u64().unwrap();
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > before);
    let run = daemon.stop();
    assert_eq!(run.report()["handled"], ids(&stage, "done").len(), "{run:?}");
}

#[test]
fn c09_g06_the_last_input_that_is_read_stays_where_another_one_could_not_be_added() {
    let read = "m: { file: { path: more } }";
    let stage = Stage::with(&CONFIG.replace("inputs: {", &format!("inputs: {{ {read},")));
    stage.write_events("more", &[event("e", "paid", "s", json!(1))]);
    let daemon = Daemon::start(&stage);
    wait(|| ids(&stage, "done").contains(&"e".to_owned()).then_some(()));
    // The file has ended: nothing but the generator is read.
    let generator = "g: { generator: { rate: 200/s, keys: 50 } }";
    let stdin = CONFIG.replace(generator, &format!("{read}, h: {{ file: {{ path: '-' }} }}"));
    stage.write("greenroom.yaml", &stdin);
    let answer = daemon.post("/api/reload").1;
    assert!(left(&answer, "inputs.h").contains("standard input"), "{answer}");
    assert!(left(&answer, "inputs.g").contains("the run would end"), "{answer}");
    let before = daemon.get("/api/run").1["settled"].as_u64().unwrap();
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > before);
    // Nothing is refused: so it ends, as it is told.
    stage.write("greenroom.yaml", CONFIG.replace(generator, read));
    daemon.signal(Signal::HUP);
    let run = daemon.ended();
    assert_eq!((run.code, &run.report()["handled"]), (0, &json!(ids(&stage, "done").len())));
}

#[test]
fn c09_g06_sighup_takes_inputs_away_and_the_run_ends_with_the_last() {
    let stage = Stage::with(CONFIG);
    stage.write_events("more", &[event("e", "paid", "s", json!(1))]);
    let daemon = Daemon::start(&stage);
    let file = CONFIG
        .replace("g: { generator: { rate: 200/s, keys: 50 } }", "f: { file: { path: more } }");
    stage.write("greenroom.yaml", file);
    // Once it answers, it hears signals.
    daemon.wait_for("/api/run", |run| run["settled"].as_u64().unwrap() > 20);
    daemon.signal(Signal::HUP);
    let run = daemon.ended();
    assert_eq!(run.code, 0, "{run:?}");
    let report = run.report();
    assert_eq!(report["handled"], ids(&stage, "done").len(), "{report}");
    let rows: Vec<_> =
        report["inputs"].as_array().unwrap().iter().map(|row| &row["removed"]).collect();
    assert_eq!(rows, [true, false], "{report}");
}

#[test]
fn q08_the_log_names_the_share_that_stops_an_input_and_its_room_changes_with_a_reload() {
    let config = "
inputs: { all: { file: { path: in, follow: true }, run_ahead: 20 } }
pools: { default: { workers: 1, queue: 100, share_by: subject, share_queue: 5 } }
handlers: { slow: { on: '**', simulate: { latency: 1h, failures: 0 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 100ms }
";
    let stage = Stage::with(config);
    let events = (0..300).map(|n| event(&format!("e{n}"), "t", "acme", json!({})));
    stage.write_events("in", &events.collect::<Vec<_>>());
    let daemon = Daemon::start(&stage);
    let told = " events of the share \"acme\" wait for room in the pool \"default\", of the run-ahead of 20";
    wait(|| daemon.log().replace('\\', "").contains(told).then_some(()));
    let waiting = |events: u64| {
        daemon.wait_for("/api/pools/default/shares", |answer| {
            answer["share_queue"] == events && answer["shares"][0]["waiting"] == events
        })
    };
    waiting(5);
    stage.write("greenroom.yaml", config.replace("share_queue: 5", "share_queue: 12"));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["changed"], json!(["pools.default.share_queue"]), "{answer}");
    assert_eq!(answer["left"], json!([]), "{answer}");
    waiting(12);
    stage.write("greenroom.yaml", config.replace(", share_queue: 5", ""));
    daemon.post("/api/reload");
    waiting(25);
}

#[test]
fn q09_what_a_reload_does_not_change_because_it_is_set_by_hand_is_named() {
    let config = "
inputs: { g: { generator: { rate: 20/s, keys: 50 } } }
pools: { default: { share_by: subject, shares: { acme: { in_hand: 5 }, bolt: { in_hand: 5 } } } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
";
    let stage = Stage::with(config);
    let daemon = Daemon::start(&stage);
    let (status, answer) = daemon.post("/api/pools/default/shares/default?in_hand=3");
    let next = answer["error"]["next"].as_str().unwrap();
    assert!(status == 400 && next.contains("shares: { default: ") && next.contains("reload"));
    for share in ["acme", "bolt"] {
        assert_eq!(daemon.post(&format!("/api/pools/default/shares/{share}?in_hand=3")).0, 200);
    }
    stage.write("greenroom.yaml", config.replace("acme: { in_hand: 5", "acme: { in_hand: 7"));
    let answer = daemon.post("/api/reload").1;
    assert_eq!(changes(&answer), ["pools.default.shares"]);
    assert_eq!(
        left(&answer, "pools.default.shares.acme"),
        "it is set by hand: `greenroom share reset default acme`"
    );
    assert_eq!(answer["left"].as_array().unwrap().len(), 1, "{answer}");
}
