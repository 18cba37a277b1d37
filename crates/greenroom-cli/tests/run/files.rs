//! Files that others read, write, rotate, cut and remove while they are in use.

use std::{fs, io::Write};

use flate2::{Compression, write::GzEncoder};
use rustix::process::Signal;
use serde_json::json;

use crate::run::{
    daemon::{Daemon, wait},
    stage::{Run, Stage, event, events, lines},
};

const FLOW: &str = "
inputs: { g: { generator: { rate: 500/s, keys: 50 } } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
";

const PASS: &str = "
inputs: { orders: { file: { path: in } } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
";

/// Ends a run by one signal, so that it handles what it has taken.
fn drained(daemon: Daemon<'_>) -> Run {
    daemon.signal(Signal::INT);
    daemon.ended()
}

fn lines_in(stage: &Stage, name: &str) -> u64 {
    stage.read(name).len() as u64
}

#[test]
fn a_second_run_on_one_output_does_not_start_and_names_the_first() {
    let stage = Stage::with(FLOW);
    stage.write(
        "other.yaml",
        FLOW.replace("admin: { listen: 127.0.0.1:0 }", "dead_letters: { file: { path: other } }"),
    );
    let first = Daemon::start(&stage);
    wait(|| (fs::metadata(stage.path("done")).ok()?.len() > 0).then_some(()));
    let second = stage.command("run other.yaml").output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("output `done`") && said.contains("another process"), "{said}");
    #[cfg(target_os = "linux")]
    assert!(said.contains(&format!("({})", first.pid())), "{said}");
    let run = drained(first);
    assert_eq!(run.report()["handled"], lines_in(&stage, "done"), "{run:?}");
}

#[test]
fn a_second_run_on_one_dead_letter_file_does_not_start_though_neither_has_a_letter() {
    let stage = Stage::with(FLOW);
    let other =
        FLOW.replace("admin: { listen: 127.0.0.1:0 }", "").replace("path: done", "path: else");
    stage.write("other.yaml", other);
    let first = Daemon::start(&stage);
    let second = stage.command("run other.yaml").output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("dead-letters.ndjson") && said.contains("another process"), "{said}");
    let checked = stage.command("check other.yaml").output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    drained(first);
    assert!(!stage.path("dead-letters.ndjson").exists());
}

#[test]
fn a_second_run_on_one_checkpoint_does_not_start() {
    let text = "
inputs: { i: { file: { path: in, checkpoint: kept } } }
pools: { default: { workers: 1, rate: 1/s } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
shutdown: { deadline: 1s }
";
    let stage = Stage::with(text);
    stage.write_events("in", &events(100));
    let other = text
        .replace("path: done", "path: done2")
        .replace("admin: { listen: 127.0.0.1:0 }", "dead_letters: { file: { path: other } }");
    stage.write("other.yaml", other);
    let first = Daemon::start(&stage);
    wait(|| stage.path("kept").exists().then_some(()));
    let second = stage.command("run other.yaml").output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("its checkpoint") && said.contains("another process"), "{said}");
    let looked = stage.command("run other.yaml --dry-run").output().unwrap();
    assert_eq!(looked.status.code(), Some(0), "{looked:?}");
    drop(first);
    stage.write("other.yaml", text.replace("rate: 1/s", "queue: 1"));
    let again = stage.command("run other.yaml").output().unwrap();
    assert_eq!(again.status.code(), Some(0), "the lock is gone with its process: {again:?}");
}

#[test]
fn an_output_that_is_removed_while_it_is_written_goes_on_in_a_new_file() {
    let stage = Stage::with(FLOW);
    let daemon = Daemon::start(&stage);
    wait(|| (lines_whole(&stage, "done") > 10).then_some(()));
    fs::remove_file(stage.path("done")).unwrap();
    wait(|| (lines_whole(&stage, "done") > 10).then_some(()));
    wait(|| daemon.log().contains("it was removed while it was written").then_some(()));
    let run = drained(daemon);
    assert_eq!(run.code, 0, "{run:?}");
    let warning = run.report()["warnings"][0].as_str().unwrap().to_owned();
    assert!(warning.contains("done: it was removed while it was written, with"), "{warning}");
}

/// Lines that are there, of a file that is being written.
fn lines_whole(stage: &Stage, name: &str) -> usize {
    fs::read(stage.path(name)).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn rotated_outputs_hold_together_what_was_handled() {
    let stage = Stage::with(FLOW);
    let daemon = Daemon::start(&stage);
    for n in 0..10 {
        wait(|| (lines_whole(&stage, "done") > 10).then_some(()));
        fs::rename(stage.path("done"), stage.path(&format!("done.{n}"))).unwrap();
        if n % 2 == 0 {
            daemon.signal(Signal::HUP);
        }
    }
    let run = drained(daemon);
    assert_eq!(run.code, 0, "{run:?}");
    let files = (0..10).map(|n| format!("done.{n}")).chain(["done".to_owned()]);
    let found: u64 = files.map(|name| lines_in(&stage, &name)).sum();
    assert_eq!(run.report()["handled"], found, "{run:?}");
}

#[test]
fn sighup_makes_the_new_file_of_an_output_that_was_rotated() {
    let stage = Stage::with(
        &FLOW
            .replace("rate: 500/s", "rate: 500/s, types: [other]")
            .replace("on: '**'", "on: other")
            .replace("done: { file", "done: { on: [none], file"),
    );
    let daemon = Daemon::start(&stage);
    daemon.get("/api/run");
    fs::rename(stage.path("done"), stage.path("done.1")).unwrap();
    daemon.signal(Signal::HUP);
    wait(|| stage.path("done").exists().then_some(()));
    assert_eq!(drained(daemon).code, 0);
}

#[test]
fn a_letter_names_the_input_that_it_came_from() {
    let stage = Stage::with(&PASS.replace(
        "orders: { file: { path: in } }",
        "first: { file: { path: in } }, second: { file: { path: in } }",
    ));
    stage.write("in", "nonsense\n");
    stage.run().counted(0, [2, 0, 2, 0]);
    let letters = stage.read("dead-letters.ndjson");
    let mut inputs: Vec<_> =
        letters.iter().map(|letter| letter["input"].as_str().unwrap()).collect();
    inputs.sort_unstable();
    assert_eq!(inputs, ["first", "second"], "{letters:?}");
    assert!(letters.iter().all(|letter| letter["source"] == "file:in"));
}

#[test]
fn a_line_of_many_megabytes_is_cut_told_and_not_printed() {
    let stage = Stage::with(&PASS.replace("path: in", "path: in, max_event: 64KiB"));
    let mut archive = GzEncoder::new(Vec::new(), Compression::fast());
    archive.write_all(&vec![b'a'; 30 << 20]).unwrap();
    archive.write_all(format!("\n{}", lines(&events(3))).as_bytes()).unwrap();
    stage.write("in", archive.finish().unwrap());
    let run = stage.run();
    run.counted(0, [4, 3, 1, 0]);
    let letter = &stage.read("dead-letters.ndjson")[0];
    assert_eq!(letter["reason"], "too_large");
    assert_eq!(letter["raw_base64"].as_str().unwrap().len(), (64_usize << 10).div_ceil(3) * 4);
    let error = letter["error"].as_str().unwrap();
    let said = "the line has 31457280 bytes, more than `max_event` (65536): it is cut";
    assert!(error.starts_with(said) && error.contains("sha256 of the whole line: "), "{error}");
    assert!(run.stderr.len() < 4_096, "{}", run.stderr.len());
}

#[test]
fn an_identifier_of_a_megabyte_is_not_printed_whole() {
    let stage =
        Stage::with(&PASS.replace("pass: ", "log: ").replace("on: '**'", "on: test.happened"));
    let long = "x".repeat(1 << 20);
    let strange =
        [event(&long, "test.happened", &long, json!({})), event(&long, &long, "s", json!({}))];
    stage.write("in", lines(&strange) + &format!("{{\"specversion\":\"{long}\"}}\n"));
    let run = stage.run();
    assert_eq!(run.code, 0, "{}", &run.stderr[..run.stderr.len().min(4_096)]);
    assert!(run.stderr.len() < 16_384, "{}", run.stderr.len());
}

#[test]
fn a_truncated_archive_is_read_on_once_it_is_restored() {
    let stage = Stage::with(&PASS.replace("path: in", "path: in, checkpoint: kept"));
    let mut archive = GzEncoder::new(Vec::new(), Compression::default());
    archive.write_all(lines(&events(5_000)).as_bytes()).unwrap();
    let whole = archive.finish().unwrap();
    stage.write("in", &whole[..whole.len() / 2]);
    let first = stage.run();
    assert_eq!(first.code, 3, "{first:?}");
    let report = first.report();
    let (taken, error) = (report["taken"].as_u64().unwrap(), report["errors"][0].as_str().unwrap());
    assert_eq!((&report["handled"], lines_in(&stage, "done")), (&json!(taken), taken));
    assert!(error.contains(&format!("in line {}, ", taken + 1)), "{error}");
    assert!(error.contains("the gzip archive is truncated"), "{error}");
    stage.write("in", &whole);
    stage.run().counted(0, [5_000 - taken, 5_000 - taken, 0, 0]);
    assert_eq!(lines_in(&stage, "done"), 5_000);
}

#[test]
fn an_output_that_is_the_input_under_another_name_is_refused() {
    let stage = Stage::with(PASS);
    stage.write_events("in", &events(3));
    fs::hard_link(stage.path("in"), stage.path("done")).unwrap();
    let run = stage.run();
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("would be written over `inputs.orders.file.path`"), "{run:?}");
    assert_eq!(lines_in(&stage, "in"), 3);
}

#[test]
fn a_pipe_without_a_writer_is_told_and_ends_with_an_interrupt() {
    let stage = Stage::with(&format!("{PASS}admin: {{ listen: 127.0.0.1:0 }}\n"));
    let made = std::process::Command::new("mkfifo").arg(stage.path("in")).status().unwrap();
    assert!(made.success());
    let daemon = Daemon::start(&stage);
    // A daemon that answers handles signals, too.
    daemon.get("/api/run");
    wait(|| daemon.log().contains("when somebody writes to it").then_some(()));
    assert_eq!(drained(daemon).code, 0);
}
