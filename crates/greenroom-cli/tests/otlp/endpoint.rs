//! Endpoints that are gone, hang or refuse (O06).

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use crate::otlp::{
    daemon::{Daemon, wait},
    receiver::{NEVER, Receiver, shown},
    stage::{Stage, events},
};

fn following(url: &str, options: &str) -> Stage {
    let stage = Stage::with(&format!(
        "inputs: {{ in: {{ file: {{ path: in, follow: true }} }} }}
handlers: {{ all: {{ on: '**', pass: {{}} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}
admin: {{ listen: '127.0.0.1:0' }}
telemetry: {{ otlp: {{ endpoint: '{url}', sample: 1, {options} }} }}"
    ));
    stage.write_events("in", &events(50));
    stage
}

/// A figure of `/metrics`.
fn figure(daemon: &Daemon<'_>, series: &str) -> u64 {
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {}\r\n\r\n", daemon.address);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line =
        text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{text}"));
    line.trim().parse().unwrap()
}

const NOT_THROUGH: &str = "does not reach its endpoint";
const AGAIN: &str = "reaches its endpoint again";

#[test]
fn o06_an_endpoint_that_is_gone_and_back_is_told_once_each_and_loses_nothing_that_had_room() {
    // Nobody listens there yet.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let stage = following(&format!("http://{address}"), "every: 1s");
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 50);
    wait(|| daemon.log().contains(NOT_THROUGH).then_some(()));
    let receiver = wait(|| TcpListener::bind(address).ok().map(Receiver::on));
    wait(|| daemon.log().contains(AGAIN).then_some(()));
    wait(|| (receiver.seen().spans.len() == 100).then_some(()));
    wait(|| {
        (figure(&daemon, "greenroom_otlp_exported_total{signal=\"traces\"}") == 100).then_some(())
    });
    assert_eq!(figure(&daemon, "greenroom_otlp_dropped_total{signal=\"traces\"}"), 0);
    receiver.answer(503);
    wait(|| (daemon.log().matches(NOT_THROUGH).count() == 2).then_some(()));
    receiver.answer(200);
    wait(|| (daemon.log().matches(AGAIN).count() == 2).then_some(()));
    // What the exporter logs is not exported: a line that came after it is there, and it is not.
    daemon.signal(rustix::process::Signal::HUP);
    let lines = wait(|| {
        let logs = receiver.seen().logs;
        let lines: Vec<_> = logs.iter().filter_map(|line| shown(line.body.as_ref())).collect();
        lines.iter().any(|line| line.contains("was read again")).then_some(lines)
    });
    let own = [NOT_THROUGH, AGAIN];
    assert!(!lines.iter().any(|line| own.iter().any(|own| line.contains(own))), "{lines:?}");
    daemon.stop();
}

#[test]
fn o06_what_an_endpoint_refuses_is_dropped_and_counted() {
    let receiver = Receiver::start();
    receiver.answer(400);
    let stage = following(&receiver.url, "logs: false, every: 1h");
    let daemon = Daemon::start(&stage);
    wait(|| {
        (figure(&daemon, "greenroom_otlp_dropped_total{signal=\"traces\"}") == 100).then_some(())
    });
    assert_eq!(daemon.log().matches("refuses the data").count(), 1, "{}", daemon.log());
    assert_eq!(figure(&daemon, "greenroom_events_settled_total{outcome=\"handled\"}"), 50);
    daemon.stop();
}

#[test]
fn o06_an_endpoint_that_never_answers_does_not_keep_a_run_from_its_end() {
    let receiver = Receiver::start();
    receiver.answer(NEVER);
    let stage = following(&receiver.url, "timeout: 1h");
    stage.write(
        "greenroom.yaml",
        std::fs::read_to_string(stage.path("greenroom.yaml"))
            .unwrap()
            .replace(", follow: true", ""),
    );
    let run = stage.run();
    run.counted(0, [50, 50, 0, 0]);
    assert!((5..20).contains(&run.took.as_secs()), "{:?}", run.took);
    assert!(run.stderr.contains("the last telemetry is not exported"), "{}", run.stderr);
    assert!(run.took > Duration::from_secs(4));
}

#[test]
fn o06_a_reload_that_changes_it_says_that_it_needs_a_new_start() {
    let receiver = Receiver::start();
    let stage = following(&receiver.url, "logs: false");
    let daemon = Daemon::start(&stage);
    let text = std::fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    stage.write("greenroom.yaml", text.replace("sample: 1", "sample: 0.5"));
    daemon.signal(rustix::process::Signal::HUP);
    let left = wait(|| {
        let log = daemon.log();
        log.lines().find(|line| line.contains("left unchanged")).map(str::to_owned)
    });
    assert!(left.contains("telemetry") && left.contains("start it again"), "{left}");
    daemon.stop();
}
