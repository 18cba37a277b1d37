//! Events by key from a stream to a service; a kill on the way; a dry run.

use std::{collections::HashMap, collections::HashSet, thread, time::Duration};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::nats::{
    daemon::{Daemon, wait},
    server::{Answer, Server},
    stage::{Run, Stage},
    streams::{Client, address, by_key, input, reading, unique},
};

const PASS: &str = "handlers: { all: { on: '**', order_by: subject, pass: {} } }
outputs: { o: { file: { path: out } } }";

#[test]
fn n01_events_go_by_key_from_a_stream_to_a_service_and_are_acknowledged() {
    let Some(address) = address() else { return };
    let (stream, mut client) = (unique("orders"), Client::connect(&address));
    client.make(&stream);
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(5));
        Answer::Status(204, "")
    });
    let rest = format!(
        "
pools: {{ default: {{ workers: 16, queue: 100 }} }}
handlers: {{ orders: {{ on: 'order.*', order_by: subject, http: {{ url: '{}', pass: true }} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}",
        server.url
    );
    let stage = Stage::with(&reading(&address, (&stream, "billing"), &rest));
    client.publish(&stream, &by_key(200, 20));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 200);
    let consumer = client.consumer(&stream, "billing");
    // What the input may hold beside full pools, the queue and the workers.
    assert_eq!(consumer["config"]["max_ack_pending"], 10_000 + 100 + 16, "{consumer}");
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [200, 200, 0, 0]);
    let consumer = client.consumer(&stream, "billing");
    assert_eq!((&consumer["num_pending"], &consumer["num_ack_pending"]), (&json!(0), &json!(0)));
    let mut last = HashMap::new();
    for request in server.requests.lock().unwrap().iter() {
        let data: Value = serde_json::from_slice(&request.body).unwrap();
        let key = request.header("ce-subject").unwrap().to_owned();
        let before = last.insert(key, data["n"].as_u64().unwrap());
        assert!(before.is_none_or(|before| before < data["n"].as_u64().unwrap()));
    }
    assert_eq!(last.len(), 20);
}

#[test]
fn n04_what_was_handled_goes_to_another_stream_in_order_and_once() {
    let Some(address) = address() else { return };
    let (stream, billed) = (unique("orders"), unique("billed"));
    let mut client = Client::connect(&address);
    client.make(&stream);
    client.publish(&stream, &by_key(100, 10));
    let rest = format!(
        "
handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}
outputs: {{ o: {{ nats: {{ servers: '{address}', subject: '{billed}.{{subject}}.{{type}}' }} }} }}"
    );
    let stage = Stage::with(&reading(&address, (&stream, "c"), &rest));
    let daemon = Daemon::start(&stage);
    // Its stream is not there yet: it pauses, and goes on once it is.
    daemon.wait_for("/api/outputs/o", |output| output["state"] == "paused");
    client.make(&billed);
    daemon.wait_for("/api/run", |run| run["settled"] == 100);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [100, 100, 0, 0]);

    // Read back, with the subject that each was published to.
    let rule = ", records: { type: t, source: { topic: {} }, subject: { header: ce-subject }, \
                extensions: { n: { pointer: /n } } }";
    let stage = Stage::with(&format!(
        "
inputs: {{ in: {} }}
{PASS}
admin: {{ listen: 127.0.0.1:0 }}
",
        input(&address, (&billed, "c"), "", rule)
    ));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 100).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [100, 100, 0, 0]);
    let mut next = HashMap::new();
    for event in stage.read("out") {
        let key = event["subject"].as_str().unwrap().to_owned();
        assert_eq!(event["source"], json!(format!("{billed}.{key}.order.placed")), "{event}");
        let next: &mut u64 = next.entry(key).or_default();
        assert_eq!(event["n"], *next, "{event}");
        *next += 1;
    }
}

#[test]
fn d01_killed_and_started_again_it_loses_nothing() {
    const COUNT: usize = 900;
    let Some(address) = address() else { return };
    let (stream, mut client) = (unique("killed"), Client::connect(&address));
    client.make(&stream);
    let rest = "
pools: { default: { workers: 8 } }
handlers: { orders: { on: '**', order_by: subject, simulate: { latency: 15ms..20ms } } }
outputs: { o: { file: { path: done } } }";
    let stage = Stage::with(&reading(&address, (&stream, "c"), rest));
    client.publish(&stream, &by_key(COUNT, 50));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("done") > COUNT / 2).then_some(()));
    daemon.signal(Signal::KILL);
    drop(daemon);
    assert!(stage.count_lines("done") < COUNT, "something was left to do");
    let daemon = Daemon::start(&stage);
    let ids = || {
        let done = stage.read("done");
        let ids = done.iter().map(|event| event["id"].as_str().unwrap().to_owned());
        ids.collect::<HashSet<_>>().len()
    };
    wait(|| (ids() == COUNT).then_some(()));
    let log = daemon.log();
    daemon.signal(Signal::INT);
    let run = daemon.ended();
    assert_eq!(run.code, 0, "{run:?}");
    assert!(log.contains("resumed: 1 partition"), "{log}");
    let taken = run.report()["taken"].as_u64().unwrap() as usize;
    assert!(taken < COUNT, "what was acknowledged is not handled again: {taken}");
}

#[test]
fn c15_a_dry_run_reads_what_a_consumer_has_not_done_and_leaves_it_alone() {
    let Some(address) = address() else { return };
    let (stream, mut client) = (unique("dry"), Client::connect(&address));
    client.make(&stream);
    client.publish(&stream, &by_key(120, 10));
    let stage = Stage::with(&reading(&address, (&stream, "c"), PASS));
    let dry_run = || {
        let started = std::time::Instant::now();
        let output = stage.command("run greenroom.yaml --dry-run").output().unwrap();
        let run = Run::of(output, started);
        assert_eq!(run.code, 0, "{run:?}");
        run.stdout
    };
    let before = dry_run();
    for said in [" 120 events in ", "the inputs were read to their end", "no consumer was"] {
        assert!(before.contains(said), "{said:?} in {before}");
    }
    assert_eq!(client.consumer(&stream, "c"), Value::Null, "it was not made");
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 120).then_some(()));
    wait(|| (client.consumer(&stream, "c")["ack_floor"]["stream_seq"] == 120).then_some(()));
    client.publish(&stream, &by_key(30, 10));
    wait(|| (stage.count_lines("out") == 150).then_some(()));
    wait(|| (client.consumer(&stream, "c")["ack_floor"]["stream_seq"] == 150).then_some(()));
    let was = client.consumer(&stream, "c")["delivered"].clone();
    assert!(dry_run().contains(" 0 events in "));
    assert_eq!(client.consumer(&stream, "c")["delivered"], was);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [150, 150, 0, 0]);
}

#[test]
fn n03_keys_come_from_the_subject_and_records_of_others_become_events() {
    let Some(address) = address() else { return };
    let (stream, mut client) = (unique("raw"), Client::connect(&address));
    client.make(&stream);
    let rule = ", records: { type: made, source: { topic: {} }, subject: { key: {} }, time: { time: {} }, \
                extensions: { number: { pointer: /n } } }";
    let stage = Stage::with(&format!(
        "
inputs: {{ in: {} }}
handlers: {{ all: {{ on: '**', order_by: partitionkey, pass: {{}} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        input(&address, (&stream, "c"), ", key: { token: 2 }, subjects: ['*.*.made']", rule)
    ));
    for n in 0..3 {
        client.ask(&format!("{stream}.k{n}.made"), format!("{{\"n\":{n}}}").as_bytes());
        client.ask(&format!("{stream}.k{n}.other"), b"not wanted");
    }
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 3).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [3, 3, 0, 0]);
    let mut out = stage.read("out");
    out.sort_by_key(|event| event["subject"].to_string());
    for (n, event) in out.iter().enumerate() {
        assert_eq!(event["subject"], json!(format!("k{n}")), "{event}");
        assert_eq!(event["partitionkey"], event["subject"], "{event}");
        assert_eq!(event["source"], json!(format!("{stream}.k{n}.made")));
        assert_eq!(event["number"], n, "{event}");
    }
}
