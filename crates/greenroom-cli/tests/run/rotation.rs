//! Outputs and dead letters that are put aside: by greenroom itself, or by others who then send
//! SIGHUP (B05, C09, C12).

use std::{
    fs::{self, File},
    process::Stdio,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::{
    daemon::{Daemon, wait},
    order::{Repeats, assert_all_in_order},
    stage::{Stage, events},
};

const SMALL: &str = "
inputs: { i: { file: { path: in, checkpoint: kept } } }
pools: { default: { workers: 8 } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: out/done.ndjson, rotate: { size: 20KiB } } } }
";

/// Every second event is one that nobody handles.
const FLOW: &str = "
inputs: { g: { generator: { rate: 1000/s, keys: 50, types: [good, bad] } } }
handlers: { all: { on: good, pass: } }
outputs: { done: { file: { path: out/done.ndjson } } }
dead_letters: { file: { path: out/letters.ndjson } }
admin: { listen: 127.0.0.1:0 }
";

fn stage(config: &str) -> Stage {
    let stage = Stage::with(config);
    fs::create_dir(stage.path("out")).unwrap();
    stage
}

/// Names in the directory of the outputs that begin so, sorted.
fn names(stage: &Stage, beginning: &str) -> Vec<String> {
    let entries = fs::read_dir(stage.path("out")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with(beginning)).collect();
    names.sort();
    names
}

/// What is in all files of an output, in order. Each holds whole lines.
fn all(stage: &Stage, beginning: &str) -> Vec<Value> {
    let names = names(stage, beginning);
    names.iter().flat_map(|name| stage.read(&format!("out/{name}"))).collect()
}

#[test]
fn c12_an_output_is_put_aside_by_its_size_and_numbers_go_on_over_runs() {
    let stage = stage(SMALL);
    let events = events(2_000);
    stage.write_events("in", &events[..1_000]);
    stage.run().counted(0, [1_000, 1_000, 0, 0]);
    let first = names(&stage, "done");
    stage.write_events("in2", &events[1_000..]);
    stage.write("greenroom.yaml", SMALL.replace("in, checkpoint: kept", "in2"));
    let run = stage.run();
    let report = run.counted(0, [1_000, 1_000, 0, 0]);
    assert!(report["warnings"].as_array().is_none_or(Vec::is_empty), "{report}");
    let both = names(&stage, "done");
    assert!(first.len() > 5 && both.len() > first.len() + 5, "{both:?}");
    assert_eq!(
        (both[0].as_str(), both.last().unwrap().as_str()),
        ("done.000001.ndjson", "done.ndjson")
    );
    for name in &both[..both.len() - 1] {
        let length = stage.path(&format!("out/{name}")).metadata().unwrap().len();
        assert!((20_480..21_000).contains(&length), "{name}: {length}");
    }
    assert_all_in_order(&events, &all(&stage, "done"), Repeats::None);
}

#[test]
fn c12_with_keep_the_oldest_files_go_and_nothing_else_does() {
    let stage = stage(&SMALL.replace("size: 20KiB", "size: 20KiB, keep: 2"));
    stage.write_events("in", &events(1_000));
    stage.write("out/done.1.ndjson", "theirs\n");
    stage.write("out/done.ndjson.1", "theirs\n");
    stage.run().counted(0, [1_000, 1_000, 0, 0]);
    let found = names(&stage, "done.00");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(stage.path("out/done.1.ndjson").exists() && stage.path("out/done.ndjson.1").exists());
    let last = stage
        .read("out/done.ndjson")
        .pop()
        .or_else(|| stage.read(&format!("out/{}", found.last().unwrap())).pop());
    assert!(last.is_some(), "the newest are kept");
}

#[test]
fn c12_at_the_end_of_a_period_a_file_is_put_aside_without_a_further_line() {
    let stage = stage(&FLOW.replace("out/done.ndjson", "out/done.ndjson, rotate: { every: 1s }"));
    let daemon = Daemon::start(&stage);
    wait(|| (names(&stage, "done.00").len() >= 2).then_some(()));
    daemon.signal(Signal::INT);
    let report = daemon.ended().report();
    assert_eq!(report["handled"], all(&stage, "done").len(), "{report}");
}

#[test]
fn d06_dead_letters_are_put_aside_as_well() {
    let text = SMALL.replace("on: '**'", "on: none")
        + "dead_letters: { file: { path: out/letters.ndjson, rotate: { size: 20KiB } } }\n";
    let stage = stage(&text);
    stage.write_events("in", &events(500));
    stage.run().counted(0, [500, 0, 500, 0]);
    assert!(names(&stage, "letters.00").len() > 5);
    assert_eq!(all(&stage, "letters").len(), 500);
}

/// Killed again and again while its output rotates; each run goes on with what the checkpoint
/// leaves.
#[test]
fn b05_after_kill_9_while_an_output_rotates_nothing_is_lost_or_torn() {
    const EVENTS: usize = 10_000;
    let stage = stage(&SMALL.replace("size: 20KiB", "size: 4KiB"));
    let events = events(EVENTS);
    stage.write_events("in", &events);
    for _ in 0..3 {
        let before = names(&stage, "done.00").len();
        let mut child = stage
            .command("run greenroom.yaml --report json")
            .stdout(Stdio::null())
            .stderr(File::create(stage.path("log")).unwrap())
            .spawn()
            .unwrap();
        wait(|| (names(&stage, "done.00").len() >= before + 20).then_some(()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    stage.write("greenroom.yaml", SMALL);
    let run = stage.run();
    assert_eq!((run.code, &run.report()["refused"]), (0, &json!(0)), "{run:?}");
    assert_all_in_order(&events, &all(&stage, "done"), Repeats::Allowed);
}

#[test]
fn c09_sighup_opens_outputs_and_dead_letters_anew_after_they_were_renamed() {
    let stage = stage(FLOW);
    let daemon = Daemon::start(&stage);
    for n in 0..6 {
        for name in ["done", "letters"] {
            let live = format!("out/{name}.ndjson");
            wait(|| (stage.count_lines(&live) > 10).then_some(()));
            fs::rename(stage.path(&live), stage.path(&format!("out/{name}.{n}"))).unwrap();
        }
        daemon.signal(Signal::HUP);
        for name in ["done", "letters"] {
            wait(|| stage.path(&format!("out/{name}.ndjson")).exists().then_some(()));
        }
    }
    daemon.signal(Signal::INT);
    let run = daemon.ended();
    let report = run.report();
    assert_eq!((run.code, &report["refused"]), (0, &json!(0)), "{report}");
    assert_eq!(report["handled"], all(&stage, "done").len(), "{report}");
    assert_eq!(report["dead_lettered"], all(&stage, "letters").len(), "{report}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("done.ndjson: it was renamed"), "{warnings}");
    assert!(warnings.contains("letters.ndjson: it was renamed"), "{warnings}");
}

/// After SIGHUP, what was renamed is nobody's: a tool may compress it at once.
#[test]
fn b05_a_file_that_was_renamed_is_not_written_after_the_new_one_is_there() {
    let stage = stage(FLOW);
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out/done.ndjson") > 10).then_some(()));
    fs::rename(stage.path("out/done.ndjson"), stage.path("out/done.old")).unwrap();
    daemon.signal(Signal::HUP);
    wait(|| (stage.count_lines("out/done.ndjson") > 10).then_some(()));
    let old = fs::read(stage.path("out/done.old")).unwrap();
    assert!(old.ends_with(b"\n"));
    wait(|| (stage.count_lines("out/done.ndjson") > 200).then_some(()));
    assert_eq!(fs::read(stage.path("out/done.old")).unwrap(), old);
    drop(daemon);
}

/// `copytruncate`: while nothing is written, all of it is in one of the two files.
#[test]
fn b05_a_file_that_was_copied_and_cut_goes_on_at_its_new_end_with_a_warning() {
    let quiet = FLOW.replace("types: [good, bad]", "types: [good], count: 200");
    // A second input keeps it going while nothing comes.
    let stage = stage(&quiet.replace("inputs: {", "inputs: { more: { file: { path: pipe } },"));
    rustix::fs::mkfifoat(rustix::fs::CWD, stage.path("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out/done.ndjson") == 200).then_some(()));
    daemon.wait_for("/api/run", |run| run["settled"] == 200);
    fs::copy(stage.path("out/done.ndjson"), stage.path("out/done.copy")).unwrap();
    File::options().write(true).open(stage.path("out/done.ndjson")).unwrap().set_len(0).unwrap();
    daemon.signal(Signal::HUP);
    let good = json!({ "specversion": "1.0", "id": "last", "source": "/t", "type": "good" });
    fs::write(stage.path("pipe"), format!("{good}\n")).unwrap();
    let run = daemon.ended();
    let report = run.counted(0, [201, 201, 0, 0]);
    assert_eq!(
        (stage.count_lines("out/done.copy"), stage.count_lines("out/done.ndjson")),
        (200, 1)
    );
    assert!(report["warnings"][0].as_str().unwrap().contains("it was cut to"), "{report}");
}

#[test]
fn c02_a_rotation_that_cannot_be_is_told() {
    let stage = stage("");
    stage.write_events("in", &events(1));
    let letters = "\ndead_letters: { file: { path: out/done.000001.ndjson } }\n";
    for (from, to, expected) in [
        ("size: 20KiB", "", "nothing says when the file is put aside"),
        ("size: 20KiB", "keep: 3", "nothing says when the file is put aside"),
        ("size: 20KiB", "size: 20", "`size` has to be"),
        ("size: 20KiB", "every: 10ms", "`every` has to be"),
        ("out/done.ndjson", "/dev/null", "only a regular file can be rotated"),
        ("\ninputs", &format!("{letters}inputs"), "has a name that `dead_letters.file.path` uses"),
    ] {
        stage.write("greenroom.yaml", SMALL.replace(from, to));
        let run = stage.run();
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
        assert!(run.stderr.ends_with("1 error\n"), "{}", run.stderr);
    }
    let reads = SMALL.replace("path: in,", "path: 'out/done.0*',");
    stage.write("greenroom.yaml", reads);
    let run = stage.run();
    assert!(run.stderr.contains("has a name that `inputs.i.file.path` uses"), "{}", run.stderr);
}
