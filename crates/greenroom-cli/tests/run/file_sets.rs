//! Several files as one input: a directory or a pattern (B01).

use std::{
    collections::HashMap,
    fs::{self, File},
    process::{Child, Stdio},
};

use serde_json::{Value, json};

use crate::run::{
    daemon::wait,
    order::{Repeats, assert_all_in_order},
    stage::{Stage, event, events, lines},
};

const PATTERN: &str = "
inputs: { i: { file: { path: 'in/*.ndjson', checkpoint: kept } } }
pools: { default: { workers: 8 } }
handlers: { all: { on: test.happened, order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
";

fn stage(config: &str) -> Stage {
    let stage = Stage::with(config);
    fs::create_dir(stage.path("in")).unwrap();
    stage
}

/// Events in files of so many each, by name.
fn write_in_parts(stage: &Stage, events: &[Value], size: usize) {
    for (n, part) in events.chunks(size).enumerate() {
        stage.write_events(&format!("in/{n:03}.ndjson"), part);
    }
}

#[test]
fn b01_the_files_of_a_pattern_are_one_input_in_the_order_of_their_names() {
    let stage = stage(PATTERN);
    let all = events(1_000);
    write_in_parts(&stage, &all, 30);
    stage.write("in/notes.txt", "not a line of it is an event\n");
    let run = stage.run();
    let report = run.counted(0, [1_000, 1_000, 0, 0]);
    assert_eq!(report["inputs"][0]["source"], "file:in/*.ndjson");
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
    let again = stage.run();
    again.counted(0, [0, 0, 0, 0]);
    assert!(again.stderr.contains("resumed: 1 partition (34 files)"), "{}", again.stderr);
}

#[test]
fn b01_a_directory_stands_for_the_data_in_it() {
    let stage = stage(&PATTERN.replace("'in/*.ndjson'", "in/"));
    write_in_parts(&stage, &events(20), 10);
    stage.write("in/notes.txt", "nonsense\n");
    stage.write("in/.hidden.ndjson", "nonsense\n");
    fs::create_dir(stage.path("in/more.ndjson")).unwrap();
    stage.write_events("in/more.ndjson/x.ndjson", &events(3));
    stage.run().counted(0, [20, 20, 0, 0]);
}

#[test]
fn d06_a_letter_and_the_log_name_the_very_file_and_line() {
    let stage = stage(PATTERN);
    stage.write_events("in/a.ndjson", &events(3));
    stage.write("in/b.ndjson", format!("\n{}nonsense\n", lines(&events(1))));
    let other = event("x", "test.other", "s", json!({}));
    stage.write_events("in/c.ndjson", &[other]);
    let run = stage.run();
    run.counted(0, [6, 4, 2, 0]);
    let mut letters: Vec<_> = stage
        .read("dead-letters.ndjson")
        .iter()
        .map(|letter| (letter["source"].clone(), letter["position"].clone()))
        .collect();
    letters.sort_by_key(|(source, _)| source.to_string());
    let expected = [(json!("file:in/b.ndjson"), json!(3)), (json!("file:in/c.ndjson"), json!(1))];
    assert_eq!(letters, expected);
    let logged = |line: &str| line.contains("source=\"file:in/b.ndjson\" position=3");
    assert!(run.stderr.lines().any(logged), "{}", run.stderr);
}

/// Starts a run whose log goes to the file `log`.
fn start(stage: &Stage) -> Child {
    let log = File::create(stage.path("log")).unwrap();
    let mut command = stage.command("run greenroom.yaml --report json");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap()
}

#[test]
fn z01_after_kill_9_in_the_second_file_nothing_is_lost_and_little_is_repeated() {
    const EVENTS: usize = 60_000;
    const FIRST_FILE: usize = EVENTS / 3;
    // Two seconds of work, so that a slow disk stores a checkpoint meanwhile.
    let stage = stage(&PATTERN.replace("workers: 8", "workers: 8, rate: 30000/s"));
    let all = events(EVENTS);
    write_in_parts(&stage, &all, FIRST_FILE);
    let mut child = start(&stage);
    wait(|| first_file_is_kept(&stage, FIRST_FILE).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    let before =
        fs::read(stage.path("done")).unwrap().iter().filter(|byte| **byte == b'\n').count();
    assert!(before < EVENTS, "it was to be killed before its end");

    let run = stage.run();
    let report = run.report();
    assert_eq!((run.code, &report["refused"]), (0, &json!(0)), "{run:?}");
    let done = stage.read("done");
    let mut times: HashMap<&str, usize> = HashMap::new();
    for event in &done {
        *times.entry(event["id"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(times.len(), EVENTS, "something is lost");
    let first_file = all[..FIRST_FILE].iter().map(|event| times[event["id"].as_str().unwrap()]);
    assert_eq!(first_file.max(), Some(1), "what the checkpoint had is repeated");
    let repeated = times.values().filter(|times| **times > 1).count();
    let (announced, _) = run.stderr.split_once(" delivered again").unwrap();
    let at_most: usize = announced.split_whitespace().last().unwrap().parse().unwrap();
    assert!(repeated <= at_most, "{repeated} repeated, at most {at_most} announced");
    assert_all_in_order(&all, &done, Repeats::Allowed);
}

/// The checkpoint has all events of the first file, and the second one is being read.
fn first_file_is_kept(stage: &Stage, events: usize) -> bool {
    let text = fs::read_to_string(stage.path("kept")).unwrap_or_default();
    let Ok(kept) = serde_json::from_str::<Value>(&text) else { return false };
    let first = &kept["of"]["files"][0];
    first["next"] == json!(events + 1) && first["open"] == json!([])
}

#[test]
fn b01_files_that_were_renamed_are_read_on_and_new_ones_are_read() {
    let stage = stage(PATTERN);
    let all = events(60);
    write_in_parts(&stage, &all[..40], 20);
    stage.run().counted(0, [40, 40, 0, 0]);
    fs::rename(stage.path("in/000.ndjson"), stage.path("in/zzz.ndjson")).unwrap();
    fs::remove_file(stage.path("in/001.ndjson")).unwrap();
    stage.write_events("in/002.ndjson", &all[40..]);
    stage.run().counted(0, [20, 20, 0, 0]);
    assert_all_in_order(&all, &stage.read("done"), Repeats::None);
}

#[test]
fn c02_a_pattern_without_a_file_is_a_warning_to_check_and_an_error_to_run() {
    for path in ["'in/*.ndjson'", "in/"] {
        let stage = stage(&PATTERN.replace("'in/*.ndjson'", path));
        let checked = stage.command("check greenroom.yaml").output().unwrap();
        let said = String::from_utf8(checked.stderr).unwrap();
        assert_eq!(checked.status.code(), Some(0), "{said}");
        assert!(said.contains("greenroom.yaml:2:30") && said.contains("1 warning"), "{said}");
        let run = stage.run();
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        assert!(run.stderr.contains("input `i`: file:in"), "{}", run.stderr);
        assert!(run.stderr.contains("there is no file to read"), "{}", run.stderr);
        assert!(!stage.path("kept").exists());
    }
}

#[test]
fn c02_what_a_pattern_would_read_is_not_written() {
    let stage = stage(PATTERN);
    stage.write_events("in/a.ndjson", &events(1));
    for (from, to, expected) in [
        ("path: done", "path: in/done.ndjson", "would be read by `inputs.i.file.path`"),
        ("path: done", "path: in/a.ndjson", "would be read by `inputs.i.file.path`"),
        ("checkpoint: kept", "checkpoint: in/kept.ndjson", "would be read by `inputs.i.file.path`"),
        ("'in/*.ndjson'", "'in/[a.ndjson'", "it is no pattern"),
        ("'in/*.ndjson'", "none/", "cannot read"),
    ] {
        stage.write("greenroom.yaml", PATTERN.replace(from, to));
        let run = stage.run();
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert!(run.stderr.ends_with("1 error\n"), "{}", run.stderr);
    }
    // In the same directory, and not matched.
    stage.write("greenroom.yaml", PATTERN.replace("path: done", "path: in/done.txt"));
    stage.run().counted(0, [1, 1, 0, 0]);
}

#[test]
fn b01_an_entry_that_cannot_be_read_is_told_and_the_others_are_read() {
    let stage = stage(PATTERN);
    stage.write_events("in/a.ndjson", &events(5));
    std::os::unix::fs::symlink("nowhere", stage.path("in/b.ndjson")).unwrap();
    let checked = stage.command("check greenroom.yaml").output().unwrap();
    let said = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.contains("`in/b.ndjson` cannot be read") && said.contains("1 warning"), "{said}");
    let run = stage.run();
    run.counted(3, [5, 5, 0, 0]);
    assert!(run.stderr.contains("all others were read"), "{}", run.stderr);
}

#[test]
fn c02_two_names_of_one_file_are_a_warning_and_read_once() {
    let stage = stage(PATTERN);
    stage.write_events("in/a.ndjson", &events(5));
    fs::hard_link(stage.path("in/a.ndjson"), stage.path("in/b.ndjson")).unwrap();
    let run = stage.run();
    run.counted(0, [5, 5, 0, 0]);
    assert!(run.stderr.contains("are one file"), "{}", run.stderr);
}

#[test]
fn b01_a_file_whose_name_is_a_pattern_is_that_file() {
    let stage = stage(PATTERN);
    stage.write_events("in/a.ndjson", &events(5));
    stage.write_events("in/*.ndjson", &events(2));
    let run = stage.run();
    let report = run.counted(0, [2, 2, 0, 0]);
    assert_eq!(report["inputs"][0]["source"], "file:in/*.ndjson");
}

#[test]
fn c15_a_dry_run_reads_all_files_of_a_pattern() {
    let stage = stage(PATTERN);
    write_in_parts(&stage, &events(50), 20);
    let output = stage.command("run greenroom.yaml --dry-run").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("50 events in ") && said.contains("read to their end"), "{said}");
    assert!(!stage.path("kept").exists() && !stage.path("done").exists());
}
