//! `greenroom send`: a file of events, posted to an `http` input.

use std::{
    io::Write,
    process::{Output, Stdio},
    time::Instant,
};

use flate2::{Compression, write::GzEncoder};
use rustix::process::Signal;
use serde_json::json;

use crate::run::{
    daemon::{Daemon, wait},
    order::{Repeats, assert_all_in_order},
    posts::address,
    server::{Answer, Server},
    stage::{Run, Stage, event, events, lines},
};

const PASS: &str = "
inputs: { i: { http: { listen: '127.0.0.1:0', store: kept, max_batch: 200 } } }
handlers: { all: { on: '**', order_by: subject, pass: } }
outputs: { done: { file: { path: done } } }
admin: { listen: 127.0.0.1:0 }
";

/// With options of the command line, and the file behind a ` -- `.
fn send(stage: &Stage, to: &str, words: &str) -> Run {
    let started = Instant::now();
    let (options, file) = words.split_once("-- ").unwrap();
    let command = format!("send {options} {to} {file}");
    Run::of(stage.command(&command).output().unwrap(), started)
}

fn count(run: &Run, what: &str) -> String {
    let (_, rest) = run.stdout.split_once(&format!("{what} ")).unwrap();
    rest.split(' ').next().unwrap().trim_end_matches(',').to_owned()
}

#[test]
fn c07_a_file_is_sent_in_order_and_a_second_time_repeats_nothing() {
    let stage = Stage::with(PASS);
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let events = events(2_000);
    stage.write_events("in", &events);
    let sent = send(&stage, &at, "-- in");
    assert_eq!((sent.code, count(&sent, "stored")), (0, "2,000".into()), "{sent:?}");
    wait(|| (stage.read("done").len() == 2_000).then_some(()));
    let done: Vec<_> = stage.read("done").iter().map(|event| event["id"].clone()).collect();
    assert_eq!(done.len(), 2_000);

    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(lines(&events).as_bytes()).unwrap();
    stage.write("in.gz", packed.finish().unwrap());
    let again = send(&stage, &at, "--batch 50 -- in.gz");
    assert_eq!((again.code, count(&again, "repeated")), (0, "2,000".into()), "{again:?}");
    assert_all_in_order(&events, &stage.read("done"), Repeats::None);
    daemon.signal(Signal::TERM);
    daemon.ended().counted(0, [2_000, 2_000, 0, 0]);
}

#[test]
fn c07_it_stops_at_a_bad_line_with_its_place_or_skips_and_counts_it() {
    let stage = Stage::with(&PASS.replace("max_batch: 200", "max_event: 1KiB"));
    let daemon = Daemon::start(&stage);
    let at = address(&daemon);
    let event = |id: &str| event(id, "t", "s", json!(1)).to_string();
    stage.write("in", format!("{}\nnothing\n{}\n", event("a"), event("b")));
    let stopped = send(&stage, &at, "-- in");
    assert_eq!((stopped.code, count(&stopped, "stored")), (3, "1".into()), "{stopped:?}");
    assert!(stopped.stderr.contains("in line 2: "), "{stopped:?}");
    let skipped = send(&stage, &at, "--skip-bad -- in");
    assert_eq!(skipped.code, 0, "{skipped:?}");
    let counts = ["stored", "repeated", "rejected"].map(|what| count(&skipped, what));
    assert_eq!(counts, ["1", "1", "1"], "{skipped:?}");

    // What only the input refuses: those before it are stored, those behind it with `--skip-bad`.
    let large = event(&"x".repeat(2_000));
    stage.write("large", format!("{}\n{}\n{large}\n{}\n", event("c"), event("d"), event("e")));
    let stopped = send(&stage, &at, "-- large");
    assert_eq!((stopped.code, count(&stopped, "stored")), (3, "2".into()), "{stopped:?}");
    assert!(stopped.stderr.contains("large line 3: 413"), "{stopped:?}");
    let skipped = send(&stage, &at, "--skip-bad -- large");
    let counts = ["stored", "repeated", "rejected"].map(|what| count(&skipped, what));
    assert_eq!((skipped.code, counts), (0, ["1".into(), "2".into(), "1".into()]), "{skipped:?}");
}

#[test]
fn c07_what_stops_it_before_a_bad_line_is_told_in_place_of_that_line() {
    let stage = Stage::new();
    stage.write("in", format!("{}nothing\n", lines(&events(3))));
    let nobody = send(&stage, "127.0.0.1:1", "--retry-for 1ms -- in");
    assert!(nobody.code == 1 && nobody.stderr.contains("cannot connect"), "{nobody:?}");
    let unknown = Server::start(|_, _| Answer::Status(401, ""));
    let sent = send(&stage, &unknown.url, "-- in");
    assert!(sent.code == 1 && sent.stderr.contains("GREENROOM_SEND_TOKEN"), "{sent:?}");
}

#[test]
fn c07_batches_that_are_too_large_are_split() {
    let stage = Stage::with(PASS);
    let daemon = Daemon::start(&stage);
    stage.write_events("in", &events(1_000));
    let sent = send(&stage, &address(&daemon), "--batch 1000 -- in");
    assert_eq!((sent.code, count(&sent, "stored")), (0, "1,000".into()), "{sent:?}");
}

#[test]
fn c07_what_may_pass_is_tried_again_and_what_will_not_is_told() {
    let stage = Stage::new();
    stage.write_events("in", &events(3));
    let server = Server::start(|number, _| match number {
        0 => Answer::Status(429, "retry-after: 0\r\n"),
        1 => Answer::Status(503, ""),
        _ => Answer::Status(202, ""),
    });
    let sent = send(&stage, &server.url, "-- in");
    assert_eq!(sent.code, 0, "{sent:?}");
    let requests = server.requests.lock().unwrap().len();
    assert_eq!(requests, 3);

    let down = Server::start(|_, _| Answer::Status(503, ""));
    let sent = send(&stage, &down.url, "--retry-for 200ms -- in");
    assert!(sent.code == 1 && sent.stderr.contains("send the file again"), "{sent:?}");
    let nobody = send(&stage, "127.0.0.1:1", "--retry-for 1ms -- in");
    assert!(nobody.code == 1 && nobody.stderr.contains("cannot connect"), "{nobody:?}");
    let unknown = Server::start(|_, _| Answer::Status(401, ""));
    let sent = send(&stage, &unknown.url, "--token x -- in");
    assert!(sent.code == 1 && sent.stderr.contains("GREENROOM_SEND_TOKEN"), "{sent:?}");
    assert_eq!(unknown.requests.lock().unwrap()[0].header("authorization"), Some("Bearer x"));
    let wrong = send(&stage, "ftp://h", "-- in");
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn c07_standard_input_is_sent_and_the_token_comes_from_the_environment() {
    let stage = Stage::with(&PASS.replace("store: kept", "store: kept, auth: { bearer: sesame }"));
    let daemon = Daemon::start(&stage);
    let mut command = stage.command("send");
    command.args([&*address(&daemon), "-"]).env("GREENROOM_SEND_TOKEN", "sesame");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines(&events(10)).as_bytes()).unwrap();
    let output: Output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("stored 10,"), "{output:?}");
}
