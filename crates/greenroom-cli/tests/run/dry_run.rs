//! `greenroom run --dry-run`: what is in the inputs, with nothing done to it.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::run::stage::{Run, Stage, event};

fn dry_run(stage: &Stage) -> Run {
    let started = Instant::now();
    Run::of(stage.command("run greenroom.yaml --dry-run").output().unwrap(), started)
}

#[test]
fn c15_it_prints_what_a_file_holds_and_settles_nothing() {
    let stage = Stage::with(
        "
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 8 }, free: { workers: 3 } }
handlers:
  ordered: { on: 'a', order_by: subject, exec: { command: [sh, -c, 'touch ran; cat'] } }
  loose: { on: 'b', pool: free, pass: }
outputs: { done: { file: { path: done } } }
",
    );
    let mut lines = Vec::new();
    for n in 0..40 {
        // Half of them of one key, the others of 12.
        let subject = if n % 2 == 0 { "hot".to_owned() } else { format!("k{}", n % 24 / 2) };
        let mut made = event(&format!("e{n}"), "a", &subject, json!({ "n": n }));
        made["time"] = json!(format!("2026-01-01T00:00:{n:02}Z"));
        lines.push(made.to_string());
    }
    for n in 0..8 {
        let mut made = event(&format!("n{n}"), "a", "", json!(null));
        made.as_object_mut().unwrap().remove("subject");
        lines.push(made.to_string());
    }
    lines.push(event("large", "b", "s", json!("x".repeat(5_000))).to_string());
    lines.push(event("nobody", "c", "s", json!(1)).to_string());
    lines.push("no event".to_owned());
    stage.write("in", lines.join("\n"));
    let run = dry_run(&stage);
    assert_eq!(run.code, 0, "{run:?}");
    let said = |text: &str| assert!(run.stdout.contains(text), "{text:?} in\n{}", run.stdout);
    said("51 events in ");
    said("40 events with a `time`, over 39.0 s: 1.03/s");
    said("largest event  5,");
    said("bytes: id large of /test");
    said("without a key  8 (15.7%)");
    said("unordered      1 (2.0%)");
    said("malformed      1 (2.0%)");
    said("no handler     1 (2.0%)");
    said("13 keys;");
    let hot = run.stdout.lines().find(|line| line.starts_with("hot ")).unwrap();
    assert_eq!(hot.split_whitespace().collect::<Vec<_>>(), ["hot", "ordered", "20", "41.7%"]);
    let listed = run.stdout.lines().filter(|line| line.contains(" ordered ")).count();
    assert_eq!(listed, 10, "the ten hottest:\n{}", run.stdout);
    // 48 events, 20 of which are one after the other.
    said("6 workers may be idle");
    said("any number");
    said("nothing was handled or settled");
    for written in ["done", "ran", "dead-letters.ndjson"] {
        assert!(!stage.path(written).exists(), "{written}");
    }
}

#[test]
fn c15_it_ends_although_a_generator_does_not() {
    let stage = Stage::with(
        "
inputs: { g: { generator: { keys: 100, zipf: 1.0, rate: 300/s } } }
handlers: { all: { on: '**', order_by: subject, drop: } }
",
    );
    let run = dry_run(&stage);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.took > Duration::from_secs(9) && run.took < Duration::from_secs(20), "{run:?}");
    assert!(run.stdout.contains("more may follow") && run.stdout.contains("100 keys"), "{run:?}");
}

#[test]
fn c15_a_configuration_with_mistakes_is_not_read() {
    let stage =
        Stage::with("inputs: { i: { file: { path: none } } }\nhandlers: { h: { on: a, drop: } }\n");
    assert_eq!(dry_run(&stage).code, 2);
}
