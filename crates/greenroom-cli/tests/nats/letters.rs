//! Dead letters to a subject, and from there back (D06).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use rustix::process::Signal;

use crate::nats::{
    daemon::Daemon,
    server::{Answer, Server},
    stage::{Run, Stage},
    streams::{Client, address, by_key, reading, unique},
};

fn run(stage: &Stage, arguments: &str) -> Run {
    Run::of(stage.command(arguments).output().unwrap(), Instant::now())
}

#[test]
fn d06_a_rejected_event_is_a_letter_in_a_stream_and_goes_back_and_is_handled() {
    let Some(address) = address() else { return };
    let (stream, dead, mut client) = (unique("orders"), unique("dead"), Client::connect(&address));
    client.make(&stream);
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = is_mended.clone();
    let server = Server::start(move |_, request| {
        let is_poison = request.header("ce-id") == Some("e7") && !mended.load(Ordering::SeqCst);
        Answer::Status(if is_poison { 422 } else { 204 }, "")
    });
    let rest = format!(
        "
handlers: {{ orders: {{ on: '**', order_by: subject, http: {{ url: '{}', pass: true }} }} }}
outputs: {{ o: {{ file: {{ path: done }} }} }}
dead_letters: {{ nats: {{ servers: '{address}', subject: {dead}.letters }} }}",
        server.url
    );
    let stage = Stage::with(&reading(&address, (&stream, "c"), &rest));
    client.publish(&stream, &by_key(20, 5));
    let daemon = Daemon::start(&stage);
    // Without a stream for it, the letter waits, and its event with it.
    daemon.wait_for("/api/run", |run| run["settled"] == 19 && run["dead_letters_open"] == 1);
    client.make(&dead);
    daemon.wait_for("/api/run", |run| run["settled"] == 20);
    let (status, answer) = daemon.get("/api/dead-letters");
    let what = answer["error"]["what"].as_str().unwrap();
    assert!(
        status == 409 && what.contains(&format!("the subject {dead}.letters of NATS")),
        "{answer}"
    );
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [20, 19, 1, 0]);

    let redrive = |more: &str| run(&stage, &format!("dead-letters redrive greenroom.yaml {more}"));
    let says = |more: &str, said: &str| {
        let run = redrive(more);
        assert!(run.code == 0 && run.stdout.contains(said), "{said:?} in {run:?}");
    };
    says("--dry-run", &format!("1 letter would be sent: {stream} (1)\n"));
    says("--reason poisoned", "no letter was sent\n1 letter not selected\n");
    let group = redrive("--group g");
    assert!(group.code == 1 && group.stderr.contains("is for letters of Kafka"), "{group:?}");
    is_mended.store(true, Ordering::SeqCst);
    let daemon = Daemon::start(&stage);
    says(
        "--reason rejected --handler orders --input in",
        &format!("1 letter sent: {stream} (1)\n"),
    );
    says("--json", r#""sent":0"#);
    daemon.wait_for("/api/run", |run| run["settled"] == 1);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [1, 1, 0, 0]);
    assert_eq!(stage.read("done").last().unwrap()["id"], "e7");
}

#[test]
fn d06_letters_to_a_server_or_a_subject_that_is_none_are_told() {
    let Some(address) = address() else { return };
    let (stream, mut client) = (unique("orders"), Client::connect(&address));
    client.make(&stream);
    let config = |letters: &str| {
        let rest = format!(
            "handlers: {{ all: {{ on: '**', pass: }} }}\ndead_letters: {{ nats: {{ {letters} }} }}"
        );
        reading(&address, (&stream, "c"), &rest)
    };
    let stage = Stage::new();
    let nobody = "servers: 'nats://ann:hunter2@127.0.0.1:9', subject: s, connect_within: 100ms";
    for (letters, arguments, code, says) in [
        (
            "servers: 'a:1', subject: 'a.{subject}'",
            "check greenroom.yaml",
            2,
            "a letter may have no event",
        ),
        (nobody, "run greenroom.yaml", 1, "is a NATS server running there?"),
        (nobody, "dead-letters redrive greenroom.yaml", 1, "is a NATS server running there?"),
    ] {
        stage.write("greenroom.yaml", config(letters));
        let run = run(&stage, arguments);
        assert!(run.code == code && run.stderr.contains(says), "{says:?} in {run:?}");
        assert!(!run.stderr.contains("hunter2"), "{run:?}");
    }
}
