//! `greenroom advise` (O13, H10).

use std::process::Output;

use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
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
    advisor: { period: 1s, p99: 20ms, full_per_minute: 100000, deep_share: 0.3 }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 5ms..5ms, failures: 0 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
";

fn flood(stage: &Stage, events: usize) {
    let one = |n: usize| event(&n.to_string(), "made", &format!("k{}", n % 40), json!(n));
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
        "WARNING pools.default: Events wait for long in the queue of the pool `default`\n  figures  full ",
        " busy, over 1 s\n  why      ",
        "             pools:\n               default:\n                 workers: 3\n",
    ];
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let as_json: Value = serde_json::from_slice(&advise(&stage, &daemon, "--json").stdout).unwrap();
    assert_eq!(as_json["findings"][0]["lines"], "pools:\n  default:\n    workers: 3");
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
    daemon.stop();
}

#[test]
fn o13_advise_says_that_nobody_answers_and_what_to_do() {
    let stage = Stage::new();
    let output = stage.command("advise 127.0.0.1:9").output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("no answer from 127.0.0.1:9") && text.contains("admin"), "{text}");
}
