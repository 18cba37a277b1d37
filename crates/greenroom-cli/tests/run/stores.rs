//! Outputs and dead letters that cannot be stored: nothing is settled that is not
//! safe, and the run says so.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use serde_json::json;

use crate::run::stage::{Run, Stage, end, events};

fn config(done: &str, letters: &str) -> String {
    format!(
        "
inputs: {{ i: {{ file: {{ path: in }} }} }}
handlers: {{ all: {{ on: test.happened, order_by: subject, pass: }} }}
outputs: {{ done: {{ file: {{ path: {done} }} }} }}
dead_letters: {{ file: {{ path: {letters} }} }}
"
    )
}

#[test]
fn c02_a_missing_input_and_a_missing_directory_are_told_before_anything_is_done() {
    let stage = Stage::with(&config("no/such/directory/done", "letters"));
    let run = stage.run();
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains("greenroom.yaml:2:30"), "{}", run.stderr);
    assert!(run.stderr.contains("greenroom.yaml:4:34"), "{}", run.stderr);
    assert!(run.stderr.contains("create the directory"), "{}", run.stderr);
    assert!(run.stderr.ends_with("2 errors\n"), "{}", run.stderr);
    assert_eq!(std::fs::read_dir(stage.path("")).unwrap().count(), 1, "nothing was created");
}

#[test]
fn b05_an_output_that_cannot_be_written_refuses_every_event() {
    let stage = Stage::with(&config("/dev/full", "letters"));
    stage.write_events("in", &events(5_000));
    let run = stage.run();
    let report = run.report();
    assert_eq!((run.code, &report["handled"]), (3, &json!(0)), "{report}");
    assert_eq!(report["refused"], report["taken"]);
    let error = report["errors"][0].as_str().unwrap();
    assert!(
        error.contains("/dev/full: cannot be written") && error.contains("run again"),
        "{error}"
    );
}

#[test]
fn d06_dead_letters_that_cannot_be_written_refuse_their_events() {
    let stage = Stage::with(&config("done", "/dev/full"));
    stage.write("in", "nonsense\n");
    let run = stage.run();
    let report = run.counted(3, [1, 0, 0, 1]);
    assert!(report["errors"][0].as_str().unwrap().contains("/dev/full"), "{report}");
}

/// A limit on the size of files stands in for a disk that is full. The report adds up, the file
/// ends with a whole line, and holds exactly what counts as handled.
#[test]
fn b05_a_full_disk_leaves_whole_confirmed_lines() {
    let stage = Stage::with(&config("done", "letters"));
    stage.write_events("in", &events(5_000));
    let run = limited(&stage, 100);
    let report = run.report();
    assert_eq!(run.code, 3, "{run:?}");
    assert!(report["refused"].as_u64() > Some(0), "{report}");
    assert_eq!(report["handled"].as_u64().unwrap(), stage.read("done").len() as u64);
    assert!(report["errors"][0].as_str().unwrap().contains("File too large"), "{report}");

    let started = Instant::now();
    let again = stage.command("run greenroom.yaml --report json").output().unwrap();
    Run::of(again, started).counted(0, [5_000, 5_000, 0, 0]);
}

/// Neither the start nor a command that writes a store is ended by the limit without a word.
#[test]
fn b05_a_limit_on_files_that_is_met_outside_of_a_run_is_told() {
    let kept = "
inputs: { i: { file: { path: in } } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
dead_letters: { store: { path: letters } }
";
    let stage = Stage::with(kept);
    stage.write("in", "");
    let start = limited(&stage, 1);
    assert!(start.code == 1 && start.stderr.contains("letters"), "{start:?}");
    let started = Instant::now();
    let run = stage.command("run greenroom.yaml").output().unwrap();
    assert_eq!(Run::of(run, started).code, 0);
    let copied = limited_to(&stage, 1, "store backup letters copy");
    assert!(copied.code == 1 && copied.stderr.contains("error: "), "{copied:?}");
}

fn limited(stage: &Stage, blocks: u32) -> Run {
    limited_to(stage, blocks, "run greenroom.yaml --report json")
}

fn limited_to(stage: &Stage, blocks: u32, command: &str) -> Run {
    let greenroom = env!("CARGO_BIN_EXE_greenroom");
    let started = Instant::now();
    let child = Command::new("sh")
        .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" {command}")])
        .arg(greenroom)
        .current_dir(stage.path(""))
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Run::of(end(child), started)
}

#[test]
fn c01_a_report_that_cannot_be_printed_is_an_error() {
    let stage = Stage::with(&config("done", "letters"));
    stage.write_events("in", &events(3));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = stage.command("run greenroom.yaml").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("cannot write to standard output"), "{text}");
    assert_eq!(stage.read("done").len(), 3, "the work is done all the same");
}
