//! `greenroom run --dry-run` of a topic: nobody in the group hears of it (C15).

use rustix::process::Signal;

use crate::kafka::{
    daemon::{Daemon, wait},
    stage::Stage,
    topics::{broker, by_key, publish, reading, run, unique},
};

const REST: &str = "handlers: { all: { on: '**', order_by: subject, pass: {} } }
outputs: { o: { file: { path: out } } }";

#[test]
fn c15_a_dry_run_reads_what_a_group_has_not_done_and_leaves_the_group_alone() {
    let Some(broker) = broker() else { return };
    let (topic, group) = (unique("dry"), unique("g"));
    let stage = Stage::with(&reading(&broker, (&topic, &group), REST));
    publish(&stage, &broker, &topic, &by_key(120, 10));
    let before = run(&stage, "run greenroom.yaml --dry-run");
    assert_eq!(before.code, 0, "{before:?}");
    for said in ["120 events in ", "the inputs were read to their end", "no group was joined"] {
        assert!(before.stdout.contains(said), "{said:?} in {}", before.stdout);
    }
    assert_eq!(stage.count_lines("out"), 0);

    let daemon = Daemon::start_with(&stage, |command| _ = command.env("RUST_LOG", "debug"));
    wait(|| (stage.count_lines("out") == 120).then_some(()));
    // What is committed is not among what is read; that is within a second.
    wait(|| {
        let during = run(&stage, "run greenroom.yaml --dry-run");
        assert_eq!(during.code, 0, "{during:?}");
        during.stdout.contains(" 0 events in ").then_some(())
    });
    publish(&stage, &broker, &topic, &by_key(30, 10));
    wait(|| (stage.count_lines("out") == 150).then_some(()));
    let log = daemon.log();
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [150, 150, 0, 0]);
    let assigned = log.matches("is read from offset").count();
    assert_eq!(assigned, 12, "its partitions came once, and stayed: {log}");
    assert!(!log.contains("resumed"), "nothing was committed before: {log}");

    let after = run(&stage, "run greenroom.yaml --dry-run");
    assert!(after.stdout.contains(" 0 events in "), "{after:?}");
}

#[test]
fn c15_a_dry_run_of_what_cannot_be_read_says_what_is_wrong() {
    let Some(broker) = broker() else { return };
    let missing = unique("missing");
    let login = login(&broker);
    let sasl = |password: &str| {
        let input = format!(
            "brokers: '{login}', group: g, topics: {missing}, \
             sasl: {{ mechanism: PLAIN, user: greenroom, password: '{password}' }}"
        );
        format!("inputs: {{ in: {{ kafka: {{ {input} }} }} }}\n{REST}\n")
    };
    for (config, says) in [
        (reading(&broker, (&missing, "g"), REST), "create it, or correct its name"),
        (reading("127.0.0.1:9", (&missing, "g"), REST), "see that a broker runs there"),
        (sasl("hunter2"), "correct the credentials"),
        (sasl("right"), "create it, or correct its name"),
    ] {
        let stage = Stage::with(&config);
        let run = run(&stage, "run greenroom.yaml --dry-run");
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains(says), "{says:?} in {}", run.stderr);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
}

/// Where clients have to log in.
pub(crate) fn login(broker: &str) -> String {
    let (host, port) = broker.rsplit_once(':').unwrap();
    format!("{host}:{}", port.parse::<u16>().unwrap() + 20_000)
}
