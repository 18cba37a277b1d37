//! `greenroom top`: a running greenroom on a terminal, or one look at it.

use serde_json::json;

use crate::run::{
    daemon::Daemon,
    stage::{Stage, event},
};

#[test]
fn o08_top_prints_one_look_where_there_is_no_terminal() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } }, ticks: { generator: { rate: 200/s, types: [tick] } } }
pools: { slow: { workers: 1, queue: 100 }, ticks: { workers: 2 } }
handlers:
  hang: { on: made, pool: slow, order_by: subject, exec: { command: [sleep, '3600'], timeout: 1h } }
  ticks: { on: tick, pool: ticks, drop: }
admin: { listen: 127.0.0.1:0 }
",
    );
    let events: Vec<_> = (0..5).map(|n| event(&format!("e{n}"), "made", "s", json!(n))).collect();
    stage.write_events("in", &events);
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/pools/slow", |pool| pool["busy"] == 1 && pool["queued"] == 4);
    let looked = stage.command("top").arg(&daemon.address).output().unwrap();
    assert!(looked.status.success(), "{looked:?}");
    let text = String::from_utf8(looked.stdout).unwrap();
    assert!(text.starts_with(&format!("greenroom at {}, up ", daemon.address)), "{text}");
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("slow")[1..9], ["running", "0", "4", "/", "100", "1", "/", "1"], "{text}");
    let rate: u64 = line("ticks")[2].parse().unwrap();
    assert!((20..2_000).contains(&rate), "{text}");
    assert!(!text.contains('\u{1b}'), "no terminal is steered: {text}");
    daemon.stop();
}

#[test]
fn o08_top_says_that_nobody_answers_and_what_to_do() {
    let stage = Stage::new();
    let looked = stage.command("top --once 127.0.0.1:9").output().unwrap();
    assert_eq!(looked.status.code(), Some(1));
    let text = String::from_utf8(looked.stderr).unwrap();
    assert!(text.contains("no answer from 127.0.0.1:9") && text.contains("admin"), "{text}");
}
