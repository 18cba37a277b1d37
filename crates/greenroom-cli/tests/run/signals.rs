//! Signals: the first drains, or gives back what waits, the second stops now, and the deadline
//! holds whatever handlers do.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::{
    daemon::{Daemon, wait},
    order::{Repeats, assert_all_in_order},
    posts::{Posts, address},
    stage::{Run, Stage, end, events, lines},
};

/// An endless input, and handlers that take a while.
const ENDLESS: &str = "
inputs: { g: { generator: { rate: 2000/s, keys: 50 } } }
pools: { default: { workers: 16 } }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 1ms..5ms, failures: 0 } } }
outputs: { done: { file: { path: done } } }
";

/// Workers that say which process they are and which they have started, and never answer.
const HUNG: &str = r#"
inputs: { i: { file: { path: in } } }
pools: { default: { workers: 3 } }
handlers:
  all:
    on: '**'
    order_by: subject
    exec: { command: [sh, -c, 'sleep 300 & read -r line; echo $$ $! >> pids; while :; do sleep 60; done'], timeout: 1h }
outputs: { done: { file: { path: done } } }
shutdown: { deadline: 400ms }
"#;

/// Starts a run whose log goes to the file `log`, and waits until it has
/// written something to `sign`.
fn start(stage: &Stage, sign: &str) -> Child {
    let log = File::create(stage.path("log")).unwrap();
    let child = stage
        .command("run greenroom.yaml --report json")
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    wait_for(&stage.path(sign), "\n");
    child
}

fn wait_for(file: &Path, text: &str) {
    let late = Instant::now() + Duration::from_secs(10);
    while !fs::read_to_string(file).unwrap_or_default().contains(text) {
        assert!(Instant::now() < late, "{text:?} did not come");
        thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A process that is dead and not waited for is not alive: who inherits it may take its time.
fn is_alive(pid: &str) -> bool {
    let state = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}

fn assert_gone(stage: &Stage) {
    for pid in fs::read_to_string(stage.path("pids")).unwrap().split_whitespace() {
        let late = Instant::now() + Duration::from_secs(2);
        while is_alive(pid) {
            assert!(Instant::now() < late, "the process {pid} lives on");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The start waits for who reads the pipe, with nothing opened yet.
#[cfg(target_os = "linux")]
#[test]
fn c09_a_hangup_during_the_start_reloads_when_it_runs() {
    let stage = Stage::with(ENDLESS);
    let made = Command::new("mkfifo").arg(stage.path("done")).status().unwrap();
    assert!(made.success());
    let log = File::create(stage.path("log")).unwrap();
    let child =
        stage.command("run greenroom.yaml").stdout(Stdio::null()).stderr(log).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let handles_hangups = || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 == 1
    };
    let late = Instant::now() + Duration::from_secs(10);
    while !handles_hangups() {
        assert!(Instant::now() < late, "a hangup is not handled");
        thread::sleep(Duration::from_millis(5));
    }
    signal(&child, Signal::HUP);
    let mut reader = File::open(stage.path("done")).unwrap();
    let reading = thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    wait_for(&stage.path("log"), "the configuration was read again");
    signal(&child, Signal::TERM);
    assert_eq!(end(child).status.code(), Some(0));
    reading.join().unwrap().unwrap();
}

#[test]
fn g05_the_first_signal_drains_all_that_was_taken() {
    for kind in [Signal::INT, Signal::TERM] {
        let stage = Stage::with(ENDLESS);
        let child = start(&stage, "done");
        let started = Instant::now();
        signal(&child, kind);
        let run = Run::of(end(child), started);
        let report = run.report();
        assert_eq!((run.code, report["refused"].as_u64()), (0, Some(0)), "{run:?}");
        assert_eq!(report["handled"].as_u64().unwrap(), stage.read("done").len() as u64);
        assert!(run.took < Duration::from_secs(2), "{run:?}");
        let log = fs::read_to_string(stage.path("log")).unwrap();
        assert!(log.contains("draining") && log.contains("interrupt again"), "{log}");
    }
}

/// One at a time of 37 keys, of 300 ms: a minute and more.
const BACKLOG: &str = "
pools: { default: { workers: 4 } }
handlers: { all: { on: '**', order_by: subject, simulate: { latency: 300ms..300ms, failures: 0 } } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
";

#[test]
fn g05_a_stop_gives_back_what_its_input_delivers_again() {
    let (file, log) =
        ("file: { path: in, checkpoint: kept }", "http: { listen: '127.0.0.1:0', store: kept }");
    for input in [file, log] {
        let stage = Stage::with(&format!("inputs: {{ i: {{ {input} }} }}{BACKLOG}"));
        let all = events(1_000);
        stage.write_events("in", &all);
        let daemon = Daemon::start(&stage);
        if input == log {
            Posts::connect(&address(&daemon)).unwrap().batch(&all).unwrap();
        }
        wait_for(&stage.path("done"), "\n");
        daemon.wait_for("/api/run", |run| run["taken"] == 1_000);
        let told = Instant::now();
        daemon.signal(Signal::TERM);
        let run = daemon.ended();
        let took = told.elapsed();
        let report = run.report();
        assert_eq!((run.code, report["refused"].as_u64()), (0, Some(0)), "{input}: {run:?}");
        let back = report["given_back"].as_u64().unwrap();
        assert!(back > 900, "{input}: {report}");
        assert!(took < Duration::from_secs(5), "{input}: {took:?}");
        assert_eq!(report["positions"][0]["delivered_again_at_most"], back);

        let passes = fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
        let simulates = "simulate: { latency: 300ms..300ms, failures: 0 }";
        stage.write("greenroom.yaml", passes.replace(simulates, "pass:"));
        let daemon = Daemon::start(&stage);
        wait(|| (stage.count_lines("done") == all.len()).then_some(()));
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ended().report()["handled"], back, "{input}");
        assert_all_in_order(&all, &stage.read("done"), Repeats::None);
    }
}

#[test]
fn g05_the_second_signal_stops_now() {
    let stage = Stage::with(&HUNG.replace("400ms", "60s"));
    stage.write_events("in", &events(20));
    let child = start(&stage, "pids");
    signal(&child, Signal::INT);
    wait_for(&stage.path("log"), "draining");
    let started = Instant::now();
    signal(&child, Signal::TERM);
    let run = Run::of(end(child), started);
    run.counted(3, [20, 0, 0, 20]);
    assert!(run.took < Duration::from_millis(1_500), "{run:?}");
    assert_gone(&stage);
}

#[test]
fn g05_hung_workers_do_not_outlive_the_deadline() {
    let stage = Stage::with(HUNG);
    stage.write_events("in", &events(20));
    let child = start(&stage, "pids");
    let started = Instant::now();
    signal(&child, Signal::TERM);
    let run = Run::of(end(child), started);
    run.counted(3, [20, 0, 0, 20]);
    assert!(run.took >= Duration::from_millis(400), "{run:?}");
    assert!(run.took < Duration::from_millis(1_600), "by the deadline and a second: {run:?}");
    assert_gone(&stage);
    let log = fs::read_to_string(stage.path("log")).unwrap();
    assert!(log.contains("deadline"), "{log}");
}

#[test]
fn g05_a_stop_in_the_middle_leaves_what_was_confirmed_in_order() {
    let stage = Stage::with(ENDLESS);
    let child = start(&stage, "done");
    signal(&child, Signal::INT);
    signal(&child, Signal::INT);
    let started = Instant::now();
    let run = Run::of(end(child), started);
    let report = run.report();
    let done = stage.read("done");
    assert!(report["handled"].as_u64().unwrap() <= done.len() as u64, "{report}");
    // The generator numbers its events: what came out is in the order of these numbers.
    let mut made = done.clone();
    made.sort_by_key(|event| event["id"].as_str().unwrap().parse::<u64>().unwrap_or_default());
    assert_all_in_order(&made, &done, Repeats::None);
}

#[test]
fn g05_an_input_that_gives_nothing_does_not_hold_up_the_end() {
    let stage = Stage::with(
        "inputs: { i: { file: { path: '-' } } }
handlers: { all: { on: '**', pass: } }
outputs: { done: { file: { path: done } } }
",
    );
    let mut child = stage.start("");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(&events(3)).as_bytes()).unwrap();
    wait_for(&stage.path("done"), "\"e2\"");
    let started = Instant::now();
    signal(&child, Signal::INT);
    let run = Run::of(end(child), started);
    run.counted(0, [3, 3, 0, 0]);
    assert!(run.took < Duration::from_secs(1), "{run:?}");
    drop(stdin);
}

#[test]
fn g05_a_drain_in_an_outage_ends_at_the_deadline_and_blames_no_event() {
    let url = crate::run::server::Server::refusing();
    let stage = Stage::with(&format!(
        "inputs: {{ g: {{ generator: {{ rate: 500/s }} }} }}
pools: {{ default: {{ workers: 8 }} }}
handlers: {{ all: {{ on: '**', order_by: subject, http: {{ url: '{url}' }} }} }}
outage: {{ failures: 3 }}
shutdown: {{ deadline: 300ms }}
"
    ));
    let child = start(&stage, "log");
    wait_for(&stage.path("log"), "in outage");
    let started = Instant::now();
    signal(&child, Signal::TERM);
    let run = Run::of(end(child), started);
    let report = run.report();
    assert_eq!((run.code, &report["dead_lettered"]), (3, &0.into()), "{report}");
    assert_eq!(report["refused"], report["taken"]);
    assert!(run.took < Duration::from_millis(1_500), "{run:?}");
}
