//! Files that grow (B01): what comes while a run goes on, through rotations, signals and crashes.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Write,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::run::{
    daemon::wait,
    stage::{Run, Stage, end, event, events, lines},
};

const FOLLOW: &str = "
inputs: { i: { file: { path: logs/in, follow: true, poll: 10ms, checkpoint: kept } } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
";

/// As many as are written at a time.
const SOME: usize = 50;

fn stage(config: &str) -> Stage {
    let stage = Stage::with(config);
    fs::create_dir(stage.path("logs")).unwrap();
    stage
}

fn append(stage: &Stage, text: &str) {
    let file = File::options().append(true).create(true).open(stage.path("logs/in"));
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

/// Starts a run whose log goes to the file `log`.
fn start(stage: &Stage) -> Child {
    let log = File::options().append(true).create(true).open(stage.path("log")).unwrap();
    let mut command = stage.command("run greenroom.yaml --report json");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap()
}

/// Ends it by one signal.
fn stop(child: Child, started: Instant) -> Run {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    Run::of(end(child), started)
}

/// How often each event came out, by its id.
fn times(stage: &Stage) -> HashMap<String, usize> {
    let mut times = HashMap::new();
    for line in fs::read_to_string(stage.path("done")).unwrap_or_default().lines() {
        // The last one may be half there.
        let Some((id, _)) = line.split_once("\"id\":\"").and_then(|(_, rest)| rest.split_once('"'))
        else {
            continue;
        };
        *times.entry(id.to_owned()).or_default() += 1;
    }
    times
}

fn log(stage: &Stage) -> String {
    fs::read_to_string(stage.path("log")).unwrap_or_default()
}

#[test]
fn b01_what_grows_is_handled_until_a_signal_ends_the_run() {
    let stage = stage(FOLLOW);
    let started = Instant::now();
    let child = start(&stage);
    wait(|| log(&stage).contains("it is waited for").then_some(()));
    let all = lines(&events(3 * SOME));
    let half = all.len() / 2 + 3;
    append(&stage, &all[..half]);
    let whole = all[..half].matches('\n').count();
    wait(|| (times(&stage).len() == whole).then_some(()));
    fs::rename(stage.path("logs/in"), stage.path("logs/in.1")).unwrap();
    let mut old = File::options().append(true).open(stage.path("logs/in.1")).unwrap();
    old.write_all(&all.as_bytes()[half..]).unwrap();
    append(&stage, &lines(&[event("new", "test.happened", "s0", json!({}))]));
    wait(|| times(&stage).contains_key("new").then_some(()));
    let run = stop(child, started);
    let total = 3 * SOME as u64 + 1;
    run.counted(0, [total, total, 0, 0]);
    assert!(times(&stage).values().all(|times| *times == 1));
    // Nothing is left for the next one.
    let (started, child) = (Instant::now(), start(&stage));
    wait(|| log(&stage).contains("resumed: 1 partition (2 files)").then_some(()));
    append(&stage, &lines(&[event("newer", "test.happened", "s0", json!({}))]));
    wait(|| times(&stage).contains_key("newer").then_some(()));
    stop(child, started).counted(0, [1, 1, 0, 0]);
}

#[test]
fn b01_kill_9_in_the_middle_of_rotations_loses_nothing() {
    let stage = stage(FOLLOW);
    let mut written = 0;
    for round in 0..6 {
        let mut child = start(&stage);
        for step in 0..4 {
            let id =
                |n| event(&format!("e{n}"), "test.happened", &format!("s{}", n % 7), json!({}));
            let some: Vec<_> = (written..written + SOME).map(id).collect();
            append(&stage, &lines(&some));
            written += SOME;
            if step == round % 4 {
                // Until it has begun with what is renamed.
                wait(|| times(&stage).contains_key(&format!("e{}", written - SOME)).then_some(()));
                let old = stage.path(&format!("logs/in.{round}"));
                fs::rename(stage.path("logs/in"), old).unwrap();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (started, child) = (Instant::now(), start(&stage));
    wait(|| (times(&stage).len() >= written).then_some(()));
    assert_eq!(stop(child, started).code, 0);
    let times = times(&stage);
    assert!((0..written).all(|n| times.contains_key(&format!("e{n}"))));
}

#[test]
fn b01_a_file_that_is_cut_is_told_and_read_from_its_start() {
    let stage = stage(&FOLLOW.replace(", checkpoint: kept", ""));
    append(&stage, &lines(&events(SOME)));
    let (started, child) = (Instant::now(), start(&stage));
    wait(|| (times(&stage).len() == SOME).then_some(()));
    // As `logrotate` does it with `copytruncate`.
    fs::copy(stage.path("logs/in"), stage.path("logs/in.1")).unwrap();
    File::options().write(true).open(stage.path("logs/in")).unwrap().set_len(0).unwrap();
    wait(|| log(&stage).contains("it was cut to 0 bytes").then_some(()));
    append(&stage, &lines(&[event("new", "test.happened", "s", json!({}))]));
    wait(|| times(&stage).contains_key("new").then_some(()));
    let total = SOME as u64 + 1;
    stop(child, started).counted(0, [total, total, 0, 0]);
    assert!(log(&stage).contains("is lost unless a copy has it"), "{}", log(&stage));
}

#[test]
fn b01_a_dry_run_reads_what_is_there_now() {
    let stage = stage(FOLLOW);
    append(&stage, &lines(&events(SOME)));
    append(&stage, "{\"half");
    let started = Instant::now();
    let output = stage.command("run greenroom.yaml --dry-run").output().unwrap();
    let run = Run::of(output, started);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("the inputs were read to their end"), "{run:?}");
    assert!(run.stdout.contains(&SOME.to_string()), "{run:?}");
    assert!(!stage.path("kept").exists());
    assert!(run.took < Duration::from_secs(9), "{run:?}");
}

#[test]
fn b01_what_cannot_be_followed_is_refused_with_a_sentence() {
    let stage = stage(FOLLOW);
    for (path, code, says) in [
        ("-", 2, "standard input cannot be followed"),
        ("packed.gz", 1, "it is compressed, and such a file cannot be followed"),
        ("/dev/null", 1, "only such a file can be followed"),
    ] {
        fs::write(stage.path("packed.gz"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]).unwrap();
        let setting = format!("inputs.i.file={{path: '{path}', follow: true}}");
        let started = Instant::now();
        let mut command = stage.command("run greenroom.yaml");
        let output = command.args(["--set", &setting]).stdin(Stdio::null()).output().unwrap();
        let run = Run::of(output, started);
        assert!(run.code == code && run.stderr.contains(says), "{path}: {run:?}");
    }
}

/// As many events in as many files, each appended.
fn append_to_each(stage: &Stage, files: usize, round: usize) {
    for file in 0..files {
        let event = event(&format!("{round}-{file}"), "test.happened", "s", json!({}));
        let path = stage.path(&format!("logs/{file:03}.ndjson"));
        let log = File::options().append(true).create(true).open(path);
        log.unwrap().write_all(lines(&[event]).as_bytes()).unwrap();
    }
}

/// As [`start`], with so many descriptors at most.
fn start_limited(stage: &Stage, descriptors: usize) -> Child {
    let log = File::options().append(true).create(true).open(stage.path("log")).unwrap();
    let limited = format!("ulimit -n {descriptors}; exec \"$0\" run greenroom.yaml --report json");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_greenroom")]);
    command.current_dir(stage.path(".")).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(log).spawn().unwrap()
}

#[test]
fn b01_more_files_than_the_process_may_open_are_followed() {
    const FILES: usize = 300;
    let stage = stage(&FOLLOW.replace("logs/in", "'logs/*.ndjson'"));
    append_to_each(&stage, FILES, 0);
    for round in 0..2 {
        let (started, child) = (Instant::now(), start_limited(&stage, 128));
        wait(|| (times(&stage).len() == (2 * round + 1) * FILES).then_some(()));
        append_to_each(&stage, FILES, 2 * round + 1);
        wait(|| (times(&stage).len() == (2 * round + 2) * FILES).then_some(()));
        let total = (1 + (round == 0) as u64) * FILES as u64;
        let run = stop(child, started);
        assert_eq!(run.code, 0, "{run:?}");
        if round == 0 {
            run.counted(0, [total, total, 0, 0]);
            append_to_each(&stage, FILES, 2);
        }
    }
    assert!(times(&stage).values().all(|times| *times == 1));
    assert!(!log(&stage).contains("Too many open files"), "{}", log(&stage));
}

#[test]
fn b01_files_are_read_one_by_one_where_the_rest_of_the_process_has_most_descriptors() {
    one_by_one(|_| {});
}

/// It is closed for the others, comes first again each time, and keeps them from nothing.
#[test]
fn b01_a_file_that_grows_all_the_time_leaves_their_turn_to_the_others() {
    one_by_one(|stage| {
        let more = lines(&[event("more", "test.more", "s", json!({}))]);
        let file = File::options().append(true).open(stage.path("logs/000.ndjson"));
        file.unwrap().write_all(more.as_bytes()).unwrap();
    });
}

/// Ten files with a line each, and descriptors for one; `meanwhile` until all lines have come.
fn one_by_one(meanwhile: impl Fn(&Stage)) {
    const FILES: usize = 10;
    let other = |n| format!("o{n}: {{ on: no.{n}, file: {{ path: other-{n} }} }}, ");
    let outputs = format!("outputs: {{ {}done:", (0..90).map(other).collect::<String>());
    let config = FOLLOW.replace("logs/in", "'logs/*.ndjson'").replace("outputs: { done:", &outputs);
    let stage = stage(&config);
    append_to_each(&stage, FILES, 0);
    let started = Instant::now();
    let child = start_limited(&stage, 128);
    let all_came = || {
        meanwhile(&stage);
        let times = times(&stage);
        (times.keys().filter(|id| id.starts_with("0-")).count() == FILES).then_some(())
    };
    wait(all_came);
    assert_eq!(stop(child, started).code, 0);
}

#[test]
fn b01_entries_that_cannot_be_read_stop_neither_the_start_nor_what_comes_later() {
    use std::os::unix::{ffi::OsStrExt, fs::symlink};
    let stage = stage(&FOLLOW.replace("logs/in", "'logs/**/*.ndjson'"));
    fs::create_dir(stage.path("logs/x")).unwrap();
    symlink("nowhere", stage.path("logs/broken.ndjson")).unwrap();
    symlink("self.ndjson", stage.path("logs/self.ndjson")).unwrap();
    symlink("..", stage.path("logs/x/a")).unwrap();
    symlink("..", stage.path("logs/x/b")).unwrap();
    let bytes = std::ffi::OsStr::from_bytes(b"logs/caf\xe9.ndjson");
    fs::write(stage.path(".").join(bytes), lines(&events(1))).unwrap();
    let (started, child) = (Instant::now(), start(&stage));
    wait(|| (times(&stage).len() == 1).then_some(()));
    for entry in ["broken.ndjson", "self.ndjson"] {
        assert!(log(&stage).contains(entry), "{}", log(&stage));
    }
    append_to_each(&stage, 2, 0);
    wait(|| (times(&stage).len() == 3).then_some(()));
    stop(child, started).counted(0, [3, 3, 0, 0]);
}
