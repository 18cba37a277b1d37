//! Positions that are kept from run to run: what a crash, a stop or an outage of the disk leaves
//! undone is done by the next run, and little else.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::Write,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::json;

use crate::run::{
    daemon::{Daemon, wait},
    stage::{Stage, event, events, lines},
};

const PASS: &str = "
inputs: { i: { file: { path: in, checkpoint: kept } } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
";

/// One event, the first, is stuck for ever; the others take a millisecond, a hundred at a time.
const STUCK: &str = r#"
inputs: { i: { file: { path: in, checkpoint: kept } } }
pools:
  default: { workers: 100 }
  stuck: { workers: 1 }
handlers:
  all: { on: test.happened, simulate: { latency: 1ms..2ms } }
  stuck: { on: test.stuck, pool: stuck, exec: { command: [sh, -c, 'read -r line; while :; do sleep 60; done'], timeout: 1h } }
outputs: { done: { file: { path: done } } }
shutdown: { deadline: 1s }
"#;

/// So many events may be taken beyond those that are stored as taken, however slow the disk is:
/// these, and those that are stored as open, are what a crash repeats at most.
const AHEAD: u64 = 16_384;

/// The line that a stuck event of the first line leaves the lowest open one.
const LOWEST: u64 = 1;

/// An event that is stuck, and so many that are not. Written without a detour: there are many.
fn with_a_stuck_one(count: usize) -> String {
    let line = |id: &str, ty: &str| {
        format!(
            "{{\"specversion\":\"1.0\",\"id\":\"{id}\",\"source\":\"/test\",\"type\":\"{ty}\"}}\n"
        )
    };
    let others = (0..count).map(|n| line(&format!("e{n}"), "test.happened"));
    [line("stuck", "test.stuck")].into_iter().chain(others).collect()
}

/// Starts a run whose log goes to the file `log`.
fn start(stage: &Stage) -> Child {
    let log = File::create(stage.path("log")).unwrap();
    let mut command = stage.command("run greenroom.yaml --report json");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap()
}

fn log(stage: &Stage) -> String {
    fs::read_to_string(stage.path("log")).unwrap_or_default()
}

/// How often each event came out, by its id.
fn times(stage: &Stage) -> HashMap<String, usize> {
    let mut times = HashMap::new();
    for line in fs::read_to_string(stage.path("done")).unwrap().lines() {
        let (_, rest) = line.split_once("\"id\":\"").unwrap();
        let (id, _) = rest.split_once('"').unwrap();
        *times.entry(id.to_owned()).or_default() += 1;
    }
    times
}

/// The lowest position that the checkpoint leaves open.
fn lowest_kept(stage: &Stage) -> u64 {
    let kept = &stage.read("kept")[0]["of"];
    kept["open"][0].as_u64().unwrap_or(kept["next"].as_u64().unwrap())
}

#[test]
fn b01_a_run_goes_on_where_the_last_one_ended() {
    let stage = Stage::with(PASS);
    stage.write_events("in", &events(1_000));
    let first = stage.run();
    let report = first.counted(0, [1_000, 1_000, 0, 0]);
    let positions = report["positions"][0].as_object().unwrap();
    assert_eq!(
        (&positions["skipped"], &positions["delivered_again_at_most"]),
        (&json!(0), &json!(0))
    );
    assert!(!first.stderr.contains("resumed"), "{}", first.stderr);

    let second = stage.run();
    second.counted(0, [0, 0, 0, 0]);
    let found = "resumed: 1 partition, 0 done events remembered, at most 0 delivered again";
    assert!(second.stderr.contains(found), "{}", second.stderr);

    let mut input = OpenOptions::new().append(true).open(stage.path("in")).unwrap();
    let more = vec![event("more", "test.happened", "s", json!({}))];
    input.write_all(lines(&more).as_bytes()).unwrap();
    stage.run().counted(0, [1, 1, 0, 0]);
    assert_eq!(stage.count_lines("done"), 1_001);
}

#[test]
fn z01_after_kill_9_little_is_repeated_and_nothing_lost() {
    const EVENTS: usize = 200_000;
    let stage = Stage::with(STUCK);
    stage.write("in", with_a_stuck_one(EVENTS));
    let mut child = start(&stage);
    let half = stage.path("in").metadata().unwrap().len() / 2;
    wait(|| (stage.path("done").metadata().ok()?.len() >= half).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let done_before = stage.count_lines("done");
    assert!(done_before < EVENTS, "it was to be killed before its end");
    assert_eq!(lowest_kept(&stage), LOWEST, "commits without a set would repeat all of it");
    let kept = &stage.read("kept")[0]["of"];
    let [next, taken_below] = ["next", "taken_below"].map(|name| kept[name].as_u64().unwrap());
    assert!(taken_below - next <= AHEAD, "{kept}");

    // The next run handles the stuck event, too, so that it ends.
    stage.write("greenroom.yaml", PASS);
    let run = stage.run();
    let report = run.report();
    assert_eq!((run.code, report["refused"].as_u64()), (0, Some(0)), "{run:?}");
    let times = times(&stage);
    assert_eq!(times.len(), EVENTS + 1, "something is lost");
    let repeated = times.values().filter(|times| **times > 1).count() as u64;
    let at_most = number_before(&run.stderr, " delivered again").unwrap();
    assert!(repeated <= at_most, "{repeated} repeated, at most {at_most} announced");
}

/// The number that stands before these words.
fn number_before(text: &str, words: &str) -> Option<u64> {
    text.split_once(words)?.0.split_whitespace().last()?.parse().ok()
}

#[test]
fn z09_a_stop_under_load_leaves_the_rest_to_the_next_run() {
    const EVENTS: usize = 12_000;
    // Two in hand at a time, of 20 ms: of 12,000, some hundred are done by the deadline.
    let slow =
        STUCK.replace("workers: 100", "workers: 2, queue: 20000").replace("1ms..2ms", "20ms..20ms");
    let stage = Stage::with(&(slow + "admin: { listen: 127.0.0.1:0 }\n"));
    stage.write("in", with_a_stuck_one(EVENTS));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["taken"].as_u64() >= Some(10_000));
    wait(|| (stage.count_lines("done") >= 20).then_some(()));
    let told = Instant::now();
    daemon.signal(Signal::TERM);
    let run = daemon.ended();
    let took = told.elapsed();
    let report = run.report();
    assert!(took >= Duration::from_secs(1), "{took:?}: {run:?}");
    assert!(took < Duration::from_millis(2_300), "by the deadline and a second: {took:?}: {run:?}");
    assert_eq!(run.code, 3, "{run:?}");
    let (taken, handled) = (report["taken"].as_u64().unwrap(), report["handled"].as_u64().unwrap());
    assert!(taken >= 10_000 && taken > handled, "{report}");
    assert_eq!(report["refused"], 1, "the stuck one is in hand: {report}");
    assert_eq!(report["given_back"].as_u64().unwrap(), taken - handled - 1);
    assert_eq!(
        report["positions"][0]["delivered_again_at_most"].as_u64().unwrap(),
        taken - handled
    );
    assert!(log(&stage).contains("deadline"), "{}", log(&stage));

    stage.write("greenroom.yaml", PASS);
    let again = stage.run();
    let left = EVENTS as u64 + 1 - handled;
    again.counted(0, [left, left, 0, 0]);
    let found = format!("at most {} delivered again", taken - handled);
    assert!(again.stderr.contains(&found), "{}", again.stderr);
    let times = times(&stage);
    assert_eq!(times.len(), EVENTS + 1);
    // What was stored as the run was stopped may not have been confirmed in time.
    let repeated = times.values().filter(|times| **times > 1).count();
    assert!(repeated <= 4, "{repeated} repeated");
}

#[test]
fn d01_what_is_refused_is_given_to_the_next_run() {
    let config = PASS.replace("on: '**', pass:", "on: test.other, pass:") + "no_handler: refuse\n";
    let stage = Stage::with(&config);
    let other = event("other", "test.other", "s", json!({}));
    let mut all = events(10);
    all.insert(3, other);
    stage.write_events("in", &all);
    let report = stage.run().counted(3, [11, 1, 0, 10]);
    assert_eq!(report["positions"][0]["delivered_again_at_most"], 10);
    stage.write("greenroom.yaml", PASS);
    stage.run().counted(0, [10, 10, 0, 0]);
    assert_eq!(times(&stage).len(), 11);
}

#[test]
fn d04_a_malformed_line_is_done_when_its_dead_letter_is_stored() {
    let stage = Stage::with(PASS);
    stage.write("in", "nonsense\n");
    stage.run().counted(0, [1, 0, 1, 0]);
    stage.run().counted(0, [0, 0, 0, 0]);
}

#[test]
fn b01_a_file_that_was_replaced_is_told_and_read_from_its_start() {
    let stage = Stage::with(PASS);
    stage.write_events("in", &events(5));
    stage.run().counted(0, [5, 5, 0, 0]);
    stage.write_events("new", &events(7)[2..]);
    fs::rename(stage.path("new"), stage.path("in")).unwrap();
    let run = stage.run();
    run.counted(0, [5, 5, 0, 0]);
    assert!(run.stderr.contains("read from its start"), "{}", run.stderr);
    assert!(run.stderr.contains("another file is in its place"), "{}", run.stderr);
    stage.run().counted(0, [0, 0, 0, 0]);
}

#[test]
fn b01_a_checkpoint_that_cannot_be_used_is_refused_with_what_to_do() {
    let stage = Stage::with(PASS);
    stage.write_events("in", &events(5));
    for content in ["", "my shopping list\n", "{\"greenroom_checkpoint\":1,"] {
        stage.write("kept", content);
        let run = stage.run();
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        assert!(run.stderr.contains("input `i`") && run.stderr.contains("remove it"), "{run:?}");
        assert_eq!(fs::read_to_string(stage.path("kept")).unwrap(), content);
    }
    assert!(!stage.path("done").exists() || stage.count_lines("done") == 0);
}

#[test]
fn c02_a_checkpoint_that_cannot_be_written_or_belongs_to_standard_input_is_a_mistake() {
    let stage = Stage::new();
    stage.write_events("in", &events(1));
    for (from, to, expected) in [
        ("path: in", "path: '-'", "standard input cannot be read again"),
        ("checkpoint: kept", "checkpoint: no/such/directory", "cannot write"),
        ("checkpoint: kept", "checkpoint: in", "would be written over"),
        ("checkpoint: kept", "checkpoint: done", "is written by"),
        ("checkpoint: kept", "checkpoint: '-'", "a checkpoint cannot be kept in `-`"),
        ("path: in", "path: /dev/null", "not a regular file"),
    ] {
        stage.write("greenroom.yaml", PASS.replace(from, to));
        let run = stage.run();
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert!(run.stderr.ends_with("1 error\n"), "{}", run.stderr);
    }
}

#[test]
fn c15_a_dry_run_reads_on_and_keeps_nothing() {
    let stage = Stage::with(PASS);
    stage.write_events("in", &events(10));
    let dry = |stage: &Stage| {
        let output = stage.command("run greenroom.yaml --dry-run").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(dry(&stage).contains("10"), "{}", dry(&stage));
    assert!(!stage.path("kept").exists());
    stage.run().counted(0, [10, 10, 0, 0]);
    let kept = fs::read(stage.path("kept")).unwrap();
    dry(&stage);
    assert_eq!(fs::read(stage.path("kept")).unwrap(), kept);
}
