//! Dead letters to a topic, and from there back (D06).

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use rustix::process::Signal;

use crate::kafka::{
    daemon::Daemon,
    server::{Answer, Server},
    stage::Stage,
    topics::{broker, by_key, publish, reading, run, unique},
};

/// A service that rejects one event, until it is mended.
fn service() -> (Server, Arc<AtomicBool>) {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let server = Server::start(move |_, request| {
        let is_poison = request.header("ce-id") == Some("e7") && !mended.load(Ordering::SeqCst);
        Answer::Status(if is_poison { 422 } else { 204 }, "")
    });
    (server, is_mended)
}

fn rest(server: &Server, letters: &str) -> String {
    format!(
        "
handlers: {{ orders: {{ on: '**', order_by: subject, http: {{ url: '{}', pass: true }} }} }}
outputs: {{ o: {{ file: {{ path: done }} }} }}
shutdown: {{ deadline: 1s }}
dead_letters: {{ {letters} }}",
        server.url
    )
}

#[test]
fn d06_a_rejected_event_is_a_letter_in_a_topic_and_goes_back_and_is_handled() {
    let Some(broker) = broker() else { return };
    let (topic, dead) = (unique("orders"), unique("dead"));
    let (server, is_mended) = service();
    let letters = format!("kafka: {{ brokers: '{broker}', topic: {dead}, compression: lz4 }}");
    let stage = Stage::with(&reading(&broker, (&topic, &unique("g")), &rest(&server, &letters)));
    publish(&stage, &broker, &topic, &by_key(20, 5));
    let dry = run(&stage, "run greenroom.yaml --dry-run");
    assert!(dry.code == 0 && dry.stdout.contains("20 events in "), "{dry:?}");
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 20);
    for path in ["/api/dead-letters", "/api/dead-letters/1"] {
        let (status, answer) = daemon.get(path);
        assert_eq!(status, 409, "{answer}");
        let what = answer["error"]["what"].as_str().unwrap();
        assert!(what.contains(&format!("the topic {dead} of Kafka")), "{answer}");
    }
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [20, 19, 1, 0]);

    let listed = run(&stage, "dead-letters list --config greenroom.yaml");
    assert_eq!(listed.code, 1, "{listed:?}");
    assert!(listed.stderr.contains("dead-letters redrive greenroom.yaml"), "{listed:?}");
    let redrive = |more: &str| run(&stage, &format!("dead-letters redrive greenroom.yaml {more}"));
    let says = |more: &str, said: &str| {
        let run = redrive(more);
        assert!(run.code == 0 && run.stdout.contains(said), "{said:?} in {run:?}");
    };
    says("--dry-run", &format!("1 letter would be sent: {topic} (1)\n"));
    says("--reason poisoned", "no letter was sent\n1 letter not selected\n");
    says("--handler other --json", r#""not_chosen":1"#);
    is_mended.store(true, Ordering::SeqCst);
    let daemon = Daemon::start(&stage);
    says(
        "--reason rejected --handler orders --input in --limit 5",
        &format!("1 letter sent: {topic} (1)\n"),
    );
    says("", "no letter was sent\n");
    daemon.wait_for("/api/run", |run| run["settled"] == 1);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [1, 1, 0, 0]);
    assert_eq!(stage.read("done").last().unwrap()["id"], "e7");
}

#[test]
fn d06_a_letter_whose_broker_is_away_keeps_its_event_open_and_the_next_run_stores_it() {
    let Some(broker) = broker() else { return };
    let (topic, dead) = (unique("orders"), unique("dead"));
    let (server, _) = service();
    let to = |letters: &str| format!("kafka: {{ brokers: '{letters}', topic: {dead} }}");
    let config = |letters: &str| reading(&broker, (&topic, &dead), &rest(&server, &to(letters)));
    let stage = Stage::with(&config("127.0.0.1:9"));
    publish(&stage, &broker, &topic, &by_key(20, 5));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 19 && run["dead_letters_open"] == 1);
    let waits = "its events wait, and are tried again";
    crate::kafka::daemon::wait(|| daemon.log().contains(waits).then_some(()));
    daemon.signal(Signal::INT);
    let run = daemon.ended();
    run.counted(3, [20, 19, 0, 1]);
    stage.write("greenroom.yaml", config(&broker));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 1);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [1, 0, 1, 0]);
}

#[test]
fn d06_a_redrive_that_cannot_go_on_says_why() {
    let Some(broker) = broker() else { return };
    let (topic, missing) = (unique("orders"), unique("missing"));
    let (server, _) = service();
    let config = |to: &str| reading(&broker, (&topic, "g"), &rest(&server, to));
    let stage = Stage::new();
    for (to, code, says) in [
        ("file: {}".to_owned(), 1, "do not go to a broker"),
        (format!("kafka: {{ brokers: '{broker}', topic: '^{missing}' }}"), 1, "lie in one topic"),
        (format!("kafka: {{ brokers: '{broker}' }}"), 2, "`topic`"),
    ] {
        stage.write("greenroom.yaml", config(&to));
        let run = run(&stage, "dead-letters redrive greenroom.yaml");
        assert!(run.code == code && run.stderr.contains(says), "{says:?} in {run:?}");
    }
}
