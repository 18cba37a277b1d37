//! `greenroom advise`, and pools that follow their advice (O13, H10).

use std::{collections::HashMap, process::Output};

use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    scrape::Scrape,
    stage::{Stage, event},
};

/// Two workers that are busy all the time, and a queue that is always full.
const CONFIG: &str = "
inputs: { in: { file: { path: in, follow: true, poll: 50ms } } }
pools:
  default:
    workers: 2
    queue: 20
    autotune: say
    bounds: { workers: 2..4, queue: 10..100 }
    advisor: { period: 1s, p99: 20ms, full_per_minute: 100000, deep_share: 0.3 }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 5ms..5ms, failures: 0 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
";
const KEYS: usize = 40;

fn flood(stage: &Stage, events: usize) {
    let one = |n: usize| event(&n.to_string(), "made", &format!("k{}", n % KEYS), json!(n));
    let events: Vec<_> = (0..events).map(one).collect();
    stage.write_events("in", &events);
}

fn size(daemon: &Daemon<'_>) -> (Value, Value) {
    let pool = daemon.get("/api/pools/default").1;
    (pool["workers"].clone(), pool["capacity"].clone())
}

fn advise(stage: &Stage, daemon: &Daemon<'_>, more: &str) -> Output {
    stage.command("advise").arg(&daemon.address).args(more.split_whitespace()).output().unwrap()
}

fn told(stage: &Stage, daemon: &Daemon<'_>) -> String {
    let output = advise(stage, daemon, "");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All of it came through, once each, and each key in order.
fn assert_whole(stage: &Stage, events: usize) {
    let mut last: HashMap<usize, usize> = HashMap::new();
    let done = stage.read("done");
    assert_eq!(done.len(), events);
    for event in done {
        let n: usize = event["id"].as_str().unwrap().parse().unwrap();
        let before = last.insert(n % KEYS, n);
        assert!(before < Some(n), "{n} came after {before:?}");
    }
}

#[test]
fn o13_h10_a_pool_that_acts_changes_its_sizes_within_bounds_loses_nothing_and_keeps_order() {
    let stage = Stage::with(&CONFIG.replace("autotune: say", "autotune: act"));
    flood(&stage, 4_000);
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/pools/default", |pool| pool["workers"] == 4 && pool["capacity"] == 10);
    let advice = daemon.get("/api/advice").1;
    let finding = &advice["findings"][0];
    assert!(finding["what"].as_str().unwrap().contains("the pool `default`"), "{advice}");
    wait(|| (stage.count_lines("done") == 4_000).then_some(()));
    assert_eq!(size(&daemon), (json!(4), json!(10)), "no further than its bounds");
    let (status, refused) = daemon.post("/api/pools/default/workers?count=5");
    assert_ne!(status, 200, "nobody goes beyond the bounds: {refused}");
    let run = daemon.stop();
    let report = run.report();
    let counts = ["taken", "handled", "refused", "out_of_order", "repeated_at_most"];
    let counts = counts.map(|name| report[name].as_u64().unwrap());
    assert_eq!(counts, [4_000, 4_000, 0, 0, 0], "{report}");
    assert_whole(&stage, 4_000);
}

#[test]
fn o13_advice_is_said_with_the_lines_and_changes_nothing_and_off_says_nothing() {
    let stage = Stage::with(CONFIG);
    flood(&stage, 20_000);
    let daemon = Daemon::start(&stage);
    let early = told(&stage, &daemon);
    assert!(early.starts_with("Nothing to say: ") && early.contains("advisor.period"), "{early}");
    daemon.wait_for("/api/advice", |advice| advice["findings"] != json!([]));
    let text = told(&stage, &daemon);
    let parts = [
        "WARNING pools.default: Events wait long in the queue of the pool `default`\n  figures  full ",
        " busy, over 1 s\n  why      ",
        "             pools:\n               default:\n                 workers: 3\n                 queue: 10\n",
    ];
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let as_json: Value = serde_json::from_slice(&advise(&stage, &daemon, "--json").stdout).unwrap();
    assert_eq!(
        as_json["findings"][0]["lines"],
        "pools:\n  default:\n    workers: 3\n    queue: 10"
    );
    assert_eq!(as_json["findings"][0]["done"], false);
    let metrics = Scrape::of(&daemon).text;
    let series =
        r#"greenroom_finding_seconds{kind="sizes",severity="warning",about="pools.default"}"#;
    assert!(metrics.contains(series), "{metrics}");
    assert_eq!(size(&daemon), (json!(2), json!(20)), "nothing was changed");

    stage.write("greenroom.yaml", CONFIG.replace("autotune: say", "autotune: off"));
    let changed = daemon.post("/api/reload").1;
    assert_eq!(changed["changed"], json!(["pools.default.autotune"]), "{changed}");
    let off = told(&stage, &daemon);
    assert!(off.starts_with("Nothing to say: ") && off.contains("`off`"), "{off}");
    assert_eq!(size(&daemon), (json!(2), json!(20)));

    // From then on it acts; bounds come with it.
    let acts = CONFIG.replace("autotune: say", "autotune: act").replace("2..4", "2..3");
    stage.write("greenroom.yaml", acts);
    let answer = daemon.post("/api/reload").1;
    let expected = json!(["pools.default.bounds", "pools.default.autotune"]);
    assert_eq!((&answer["changed"], &answer["left"]), (&expected, &json!([])), "{answer}");
    daemon.wait_for("/api/pools/default", |pool| pool["workers"] == 3 && pool["capacity"] == 10);
    daemon.stop();
}

#[test]
fn o13_advise_says_that_nobody_answers_and_what_to_do() {
    let stage = Stage::new();
    let output = stage.command("advise 127.0.0.1:9").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("nobody answers at 127.0.0.1:9") && text.contains("admin"), "{text}");
}
