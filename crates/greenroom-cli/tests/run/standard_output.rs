//! Standard output as an output: events alone are there, and all else is on standard error (C12).

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::{Value, json};

use crate::run::{
    daemon::Daemon,
    order::{Repeats, assert_all_in_order},
    stage::{Run, Stage, end, events, lines},
};

const CONFIG: &str = "
inputs: { i: { file: { path: in } } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { out: { file: { path: '-' } } }
";

const ENDLESS: &str = "
inputs: { g: { generator: { rate: 2000/s } } }
handlers: { all: { on: '**', pass: } }
outputs: { out: { file: { path: '-' } } }
";

fn parsed(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The report, which is the last line of standard error.
fn report(stderr: &str) -> Value {
    serde_json::from_str(stderr.lines().last().unwrap()).unwrap_or_else(|_| panic!("{stderr}"))
}

#[test]
fn c12_events_are_on_standard_output_and_the_report_on_standard_error() {
    let stage = Stage::with(CONFIG);
    let all = events(500);
    stage.write_events("in", &all);
    let run = stage.run();
    assert_eq!(run.code, 0, "{run:?}");
    assert_all_in_order(&all, &parsed(&run.stdout), Repeats::None);
    assert_eq!(report(&run.stderr)["handled"], 500);
    let text = stage.command("run greenroom.yaml").output().unwrap();
    assert_eq!(parsed(&String::from_utf8(text.stdout).unwrap()).len(), 500);
    let said = String::from_utf8(text.stderr).unwrap();
    assert!(said.contains("done: 500 taken, 500 handled"), "{said}");
    assert!(!stage.path("-").exists());
}

#[test]
fn b01_c12_from_standard_input_to_standard_output() {
    let stage = Stage::with(&CONFIG.replace("path: in", "path: '-'"));
    let all = events(100);
    let run = stage.run_with("", lines(&all).as_bytes());
    assert_eq!(run.code, 0, "{run:?}");
    assert_all_in_order(&all, &parsed(&run.stdout), Repeats::None);
}

#[test]
fn b05_standard_output_that_is_a_file_is_appended_to_and_synced() {
    let stage = Stage::with(CONFIG);
    stage.write_events("in", &events(10));
    for expected in [10, 20] {
        let out = File::options().append(true).create(true).open(stage.path("out")).unwrap();
        let run = stage.command("run greenroom.yaml").stdout(out).output().unwrap();
        assert!(run.status.success(), "{run:?}");
        assert_eq!(stage.read("out").len(), expected);
    }
}

#[test]
fn c01_c12_a_reader_that_has_seen_enough_ends_the_run_with_code_3() {
    let stage = Stage::with(ENDLESS);
    let started = Instant::now();
    let mut child = stage
        .command("run greenroom.yaml --report json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(parsed(&first)[0]["specversion"], "1.0");
    let run = Run::of(end(child), started);
    assert_eq!(run.code, 3, "{run:?}");
    let report = report(&run.stderr);
    let error = report["errors"][0].as_str().unwrap();
    assert!(error.contains("file:-: cannot be written: whoever read standard output"), "{error}");
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(count("taken"), count("handled") + count("refused"), "{report}");
    assert!(count("refused") > 0, "{report}");
}

#[test]
fn c12_head_closes_the_pipe_and_the_next_run_gives_what_it_did_not_get() {
    const EVENTS: usize = 20_000;
    let stage = Stage::with(&CONFIG.replace("path: in", "path: in, checkpoint: kept"));
    stage.write_events("in", &events(EVENTS));
    let script = "{ \"$0\" run greenroom.yaml --report json 2> log; echo $? > code; } | head -1";
    let head = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_greenroom")])
        .current_dir(stage.path(""))
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    assert_eq!(parsed(&String::from_utf8(head.stdout).unwrap()).len(), 1);
    assert_eq!(fs::read_to_string(stage.path("code")).unwrap(), "3\n");
    let first = report(&fs::read_to_string(stage.path("log")).unwrap());
    let handled = first["handled"].as_u64().unwrap();
    assert!(handled < EVENTS as u64, "{first}");
    let second = stage.run();
    assert_eq!(second.code, 0, "{}", second.stderr);
    let found = parsed(&second.stdout).len() as u64;
    assert_eq!(found, EVENTS as u64 - handled, "what was not written was not settled");
}

#[test]
fn c02_what_cannot_go_together_with_standard_output_is_told() {
    let stage = Stage::new();
    stage.write_events("in", &events(1));
    for (from, to, expected) in [
        ("path: '-'", "path: '-', truncate: true", "cannot be started anew"),
        ("path: '-'", "path: '-', rotate: { size: 1MiB }", "cannot be put aside"),
        ("outputs: {", "outputs: { two: { on: x, file: { path: '-' } },", "is written by"),
        ("inputs:", "dead_letters: { file: { path: '-' } }\ninputs:", "only an output can be"),
    ] {
        stage.write("greenroom.yaml", CONFIG.replace(from, to));
        let run = stage.run();
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert!(run.stderr.ends_with("1 error\n"), "{}", run.stderr);
    }
}

#[test]
fn c09_standard_output_does_not_come_with_a_reload() {
    let config = ENDLESS.replace("path: '-'", "path: done") + "admin: { listen: 127.0.0.1:0 }\n";
    let stage = Stage::with(&config);
    let daemon = Daemon::start(&stage);
    let more = config.replace("outputs: {", "outputs: { two: { on: x, file: { path: '-' } },");
    stage.write("greenroom.yaml", more);
    let answer = daemon.post("/api/reload").1;
    let left = &answer["left"][0];
    assert_eq!(
        (&answer["changed"], &left["what"]),
        (&json!([]), &json!("outputs.two")),
        "{answer}"
    );
    assert!(left["why"].as_str().unwrap().contains("standard output"), "{answer}");
    assert!(daemon.stop().report()["handled"].as_u64() > Some(0));
}

/// A reader that is slow holds the run back, and loses nothing.
#[test]
fn c12_a_slow_reader_gets_all() {
    const EVENTS: usize = 5_000;
    let stage = Stage::with(CONFIG);
    stage.write_events("in", &events(EVENTS));
    let mut child = stage
        .command("run greenroom.yaml --report json")
        .stdout(Stdio::piped())
        .stderr(File::create(stage.path("log")).unwrap())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut text, mut piece) = (Vec::new(), [0; 1_000]);
    loop {
        match out.read(&mut piece).unwrap() {
            0 => break,
            count => text.extend_from_slice(&piece[..count]),
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(parsed(&String::from_utf8(text).unwrap()).len(), EVENTS);
}
