//! What goes wrong with a server is told with what to do.

use rustix::process::{Pid, Signal, kill_process};

use crate::nats::{
    daemon::{Daemon, wait},
    stage::{Run, Stage, end},
    streams::{Client, address, input, reading, unique},
};

const REST: &str = "handlers: { all: { on: '**', order_by: subject, pass: {} } }
outputs: { o: { file: { path: out } } }";

fn run(stage: &Stage, arguments: &str) -> Run {
    let started = std::time::Instant::now();
    Run::of(stage.command(arguments).output().unwrap(), started)
}

#[test]
fn n05_a_run_and_a_dry_run_say_what_cannot_be_read() {
    let Some(address) = address() else { return };
    let missing = unique("missing");
    for (config, says) in [
        (reading(&address, (&missing, "c"), REST), "there is no stream"),
        (reading("127.0.0.1:9", (&missing, "c"), REST), "is a NATS server running there?"),
    ] {
        let stage = Stage::with(&config);
        for arguments in ["run greenroom.yaml", "run greenroom.yaml --dry-run"] {
            let run = run(&stage, arguments);
            assert_eq!(run.code, 1, "{run:?}");
            assert!(run.stderr.contains(says), "{says:?} in {}", run.stderr);
            assert!(run.stderr.contains("input `in`"), "{}", run.stderr);
        }
    }
}

#[test]
fn n05_nothing_shows_credentials() {
    let Some(_) = address() else { return };
    let url = "nats://ann:hunter2@127.0.0.1:9";
    let auth = ", auth: { user: { name: ann, password: hunter2 } }";
    let input = input(url, ("s", "c"), auth, "");
    let stage = Stage::with(&format!("inputs:\n  in: {input}\n{REST}\n"));
    for arguments in ["run greenroom.yaml", "run greenroom.yaml --dry-run"] {
        let run = run(&stage, arguments);
        assert!(!run.stderr.contains("hunter2") && !run.stdout.contains("hunter2"), "{run:?}");
    }
}

#[test]
fn c09_a_reload_that_cannot_read_a_stream_says_so_and_goes_on() {
    let Some(address) = address() else { return };
    let (stream, mut client) = (unique("there"), Client::connect(&address));
    client.make(&stream);
    let config = reading(&address, (&stream, "c"), REST);
    let stage = Stage::with(&config);
    let daemon = Daemon::start(&stage);
    let other = input(&address, (&unique("missing"), "c"), "", "");
    stage.write(
        "greenroom.yaml",
        config.replace("inputs:\n", &format!("inputs:\n  more: {other}\n")),
    );
    let answer = daemon.post("/api/reload").1;
    assert_eq!(answer["left"][0]["what"], "inputs.more", "{answer}");
    assert!(answer["left"][0]["why"].as_str().unwrap().contains("there is no stream"), "{answer}");
    daemon.stop();
}

/// Whether a process has a handler for SIGTERM.
fn handles_term(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 1 << (Signal::TERM.as_raw() - 1) != 0)
}

/// It needs no server: none is there.
#[test]
fn g05_a_signal_while_a_server_is_awaited_ends_the_run_as_it_would_later() {
    let nats = "nats: { servers: '127.0.0.1:9', stream: s, consumer: c, connect_within: 60s }";
    let stage = Stage::with(&format!("inputs: {{ in: {{ {nats} }} }}\n{REST}\n"));
    let (started, child) = (std::time::Instant::now(), stage.start(""));
    wait(|| handles_term(child.id()).then_some(()));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let run = Run::of(end(child), started);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("ended before it started"), "{run:?}");
}
