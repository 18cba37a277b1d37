//! Events by key from a topic to a service and on to another topic; a kill on the way.

use std::{
    collections::HashSet,
    fs::{self, File},
    process::Stdio,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::kafka::{
    daemon::{Daemon, wait},
    server::{Answer, Server},
    stage::Stage,
    topics::{all_of, assert_order, broker, by_key, input, publish, reading, unique},
};

#[test]
fn f07_events_go_by_key_from_a_topic_to_a_service_and_to_another_topic() {
    let Some(broker) = broker() else { return };
    let (topic, billed) = (unique("orders"), unique("billed"));
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(5));
        Answer::Status(204, "")
    });
    let rest = format!(
        "
pools: {{ default: {{ workers: 16 }} }}
handlers: {{ orders: {{ on: 'order.*', order_by: subject, http: {{ url: '{}', pass: true }} }} }}
outputs: {{ o: {{ kafka: {{ brokers: '{broker}', topic: {billed} }} }} }}",
        server.url
    );
    let stage = Stage::with(&reading(&broker, (&topic, &unique("g")), &rest));
    publish(&stage, &broker, &topic, &by_key(400, 20));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 400);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [400, 400, 0, 0]);
    let seen = server.requests.lock().unwrap();
    let seen: Vec<Value> = seen
        .iter()
        .map(|request| {
            let data: Value = serde_json::from_slice(&request.body).unwrap();
            json!({ "subject": request.header("ce-subject").unwrap(), "data": data })
        })
        .collect();
    assert_eq!(seen.len(), 400);
    assert_order(&seen);
    let billed = all_of(&broker, &billed, 400);
    assert_eq!(billed.len(), 400);
    assert_order(&billed);
    // The key that an event came with is the one that it goes with.
    assert!(billed.iter().all(|event| event["partitionkey"] == event["subject"]));
}

#[test]
fn d01_killed_and_started_again_it_loses_nothing_and_says_what_it_found() {
    const COUNT: usize = 1_500;
    let Some(broker) = broker() else { return };
    let topic = unique("killed");
    let rest = "
pools: { default: { workers: 8 } }
handlers: { orders: { on: '**', order_by: subject, simulate: { latency: 15ms..20ms } } }
outputs: { o: { file: { path: done } } }";
    let stage = Stage::with(&reading(&broker, (&topic, &unique("g")), rest));
    publish(&stage, &broker, &topic, &by_key(COUNT, 50));
    let daemon = Daemon::start(&stage);
    // Commits are made each second: it takes three seconds, and is killed after two.
    wait(|| (stage.count_lines("done") > COUNT * 2 / 3).then_some(()));
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
    assert!(log.contains("resumed: 12 partitions, "), "{log}");
    let taken = run.report()["taken"].as_u64().unwrap() as usize;
    assert!(taken < COUNT, "what was committed is not handled again: {taken}\n{log}");
}

#[test]
fn m05_records_of_others_become_events_by_their_key_headers_topic_and_time() {
    let Some(broker) = broker() else { return };
    let topic = unique("raw");
    let rule = ", records: { type: made, source: { topic: {} }, subject: { key: {} }, \
                id: { header: ce_id }, time: { time: {} }, extensions: { number: { pointer: /n } } }";
    let stage = Stage::with(&format!(
        "
inputs: {{ in: {} }}
handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}
outputs: {{ o: {{ file: {{ path: out }} }} }}
admin: {{ listen: 127.0.0.1:0 }}
",
        input(&broker, (&topic, &unique("g")), rule)
    ));
    publish(&stage, &broker, &topic, &by_key(3, 3));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 3).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [3, 3, 0, 0]);
    let mut out = stage.read("out");
    out.sort_by_key(|event| event["id"].to_string());
    for (n, event) in out.iter().enumerate() {
        let found = [&event["id"], &event["source"], &event["subject"], &event["type"]];
        let expected =
            [json!(format!("e{n}")), json!(topic), json!(format!("k{n}")), json!("made")];
        assert_eq!(found, expected.each_ref(), "{event}");
        assert_eq!(event["number"], 0, "{event}");
        assert!(event["time"].as_str().unwrap().starts_with("20"), "{event}");
    }
}

/// As the README says that `init kafka` writes, with topics and a service of the test's own.
#[test]
fn c03_two_runs_in_the_folder_of_init_kafka_share_the_partitions_once_each_has_its_own_letters() {
    let Some(broker) = broker() else { return };
    let (topic, group) = (unique("orders"), unique("billing"));
    let server = Server::start(|_, _| Answer::Status(204, ""));
    let stage = Stage::new();
    assert!(stage.command("init kafka").output().unwrap().status.success());
    let mut config = fs::read_to_string(stage.path("greenroom.yaml")).unwrap();
    for (written, ours) in [
        ("topics: orders", format!("topics: {topic}")),
        ("topic: billed", format!("topic: {topic}-billed")),
        ("group: billing", format!("group: {group}")),
        ("http://localhost:9000/orders", server.url.clone()),
    ] {
        assert!(config.contains(written), "{written}");
        config = config.replace(written, &ours);
    }
    stage.write("greenroom.yaml", config + "admin: { listen: 127.0.0.1:0 }\n");
    publish(&stage, &broker, &topic, &by_key(24, 12));
    let first = Daemon::start_with(&stage, |run| {
        run.env("KAFKA", &broker);
    });
    wait(|| first.log().contains(&format!("{topic}/0-11")).then_some(()));

    let second = |letters: Option<&str>| {
        let mut run = stage.command("run greenroom.yaml");
        run.env("KAFKA", &broker).envs(letters.map(|letters| ("LETTERS", letters)));
        run.stdin(Stdio::null()).stdout(Stdio::null());
        run.stderr(File::create(stage.path("second")).unwrap()).spawn().unwrap()
    };
    let said = || fs::read_to_string(stage.path("second")).unwrap();
    assert_eq!(second(None).wait().unwrap().code(), Some(1));
    let refused = "dead-letters.ndjson: cannot be opened for writing: another process";
    assert!(said().contains(refused), "{}", said());

    let mut shares = second(Some("more-dead-letters.ndjson"));
    let assigned = format!("assigned: group {group}: {topic}/");
    wait(|| said().contains(&assigned).then_some(()));
    kill_process(Pid::from_child(&shares), Signal::INT).unwrap();
    assert_eq!(shares.wait().unwrap().code(), Some(0), "{}", said());
    first.signal(Signal::INT);
    first.ended().counted(0, [24, 24, 0, 0]);
}
