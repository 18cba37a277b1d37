//! A broker that wants TLS and a password, or a certificate (F09). scripts/kafka has them at the
//! ports + 20001 and + 20002; the certificates are those in greenroom-bus/tests/tls.

use rustix::process::Signal;

use crate::kafka::{
    daemon::{Daemon, wait},
    stage::Stage,
    topics::{all_of, broker, by_key, publish, run, unique},
};

/// This broker, at another port.
fn at(broker: &str, further: u16) -> String {
    let (host, port) = broker.rsplit_once(':').unwrap();
    format!("{host}:{}", port.parse::<u16>().unwrap() + further)
}

/// Its port for TLS with a login.
pub(crate) fn secure(broker: &str) -> String {
    at(broker, 20_001)
}

fn certificate(name: &str) -> String {
    format!("{}/../greenroom-bus/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn by_password(broker: &str, (ca, mechanism, password): (&str, &str, &str)) -> String {
    format!(
        "brokers: '{}', tls: {{ ca: '{}' }}, sasl: {{ mechanism: {mechanism}, user: greenroom, \
         password: '{password}' }}",
        at(broker, 20_001),
        certificate(ca),
    )
}

fn by_certificate(broker: &str, name: Option<&str>) -> String {
    let own = name.map(|name| {
        let [cert, key] = ["pem", "key"].map(|kind| certificate(&format!("{name}.{kind}")));
        format!(", cert: '{cert}', key: '{key}'")
    });
    let (ca, own) = (certificate("ca.pem"), own.unwrap_or_default());
    format!("brokers: '{}', tls: {{ ca: '{ca}'{own} }}", at(broker, 20_002))
}

/// From a topic to another one, and letters to a third, all by this connection.
fn config(connection: &str, topic: &str) -> String {
    format!(
        "
inputs: {{ in: {{ kafka: {{ {connection}, group: {topic}, topics: {topic} }} }} }}
handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}
outputs: {{ o: {{ kafka: {{ {connection}, topic: {topic}-out, key: subject }} }} }}
dead_letters: {{ kafka: {{ {connection}, topic: {topic}-dead }} }}
admin: {{ listen: 127.0.0.1:0 }}
"
    )
}

#[test]
fn f09_topics_are_read_and_written_over_tls_with_a_password_that_is_not_sent() {
    let Some(broker) = broker() else { return };
    let topic = unique("secure");
    let connection = by_password(&broker, ("ca.pem", "SCRAM-SHA-512", "right"));
    let stage = Stage::with(&config(&connection, &topic));
    publish(&stage, &broker, &topic, &by_key(40, 4));
    publish(&stage, &broker, &format!("{topic}-dead"), &by_key(1, 1));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 40);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [40, 40, 0, 0]);
    let mut found = all_of(&broker, &format!("{topic}-out"), 40);
    found.sort_by_key(|event| event["id"].as_str().unwrap()[1..].parse::<u32>().unwrap());
    for (found, sent) in found.iter().zip(by_key(40, 4)) {
        let both = ["id", "type", "subject", "data"].map(|name| (&found[name], &sent[name]));
        assert!(both.iter().all(|(found, sent)| found == sent), "{found} for {sent}");
    }
    let redrive = run(&stage, "dead-letters redrive greenroom.yaml");
    assert_eq!(redrive.code, 3, "{redrive:?}");
    assert!(redrive.stdout.contains("it is no dead letter of Greenroom"), "{redrive:?}");
}

#[test]
fn f09_a_wrong_authority_and_a_wrong_password_are_told_and_no_secret_is_shown() {
    let Some(broker) = broker() else { return };
    let topic = unique("secure");
    let stage = Stage::new();
    publish(&stage, &broker, &topic, &by_key(1, 1));
    for (with, says, otherwise) in [
        (("other-ca.pem", "PLAIN", "hunter2"), "certificate verify failed", "run --dry-run"),
        (("ca.pem", "SCRAM-SHA-512", "hunter2"), "correct the credentials", "dead-letters redrive"),
    ] {
        stage.write("greenroom.yaml", config(&by_password(&broker, with), &topic));
        let daemon = Daemon::start(&stage);
        wait(|| daemon.log().contains(says).then_some(()));
        let log = daemon.log();
        daemon.signal(Signal::INT);
        daemon.ended().counted(0, [0, 0, 0, 0]);
        let other = run(&stage, &format!("{otherwise} greenroom.yaml"));
        for told in [&log, &other.stderr] {
            assert!(told.contains(says) && !told.contains("hunter2"), "{says:?} in {told}");
        }
        assert_eq!(other.code, 1, "{other:?}");
    }
}

#[test]
fn f09_a_certificate_lets_in_and_want_of_one_is_told() {
    let Some(broker) = broker() else { return };
    let topic = unique("certified");
    let stage = Stage::with(&config(&by_certificate(&broker, Some("client")), &topic));
    publish(&stage, &broker, &topic, &by_key(20, 4));
    publish(&stage, &broker, &format!("{topic}-dead"), &by_key(1, 1));
    let daemon = Daemon::start(&stage);
    daemon.wait_for("/api/run", |run| run["settled"] == 20);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [20, 20, 0, 0]);
    assert_eq!(all_of(&broker, &format!("{topic}-out"), 20).len(), 20);

    stage.write("greenroom.yaml", config(&by_certificate(&broker, None), &topic));
    let other = run(&stage, "run --dry-run greenroom.yaml");
    assert_eq!(other.code, 1, "{other:?}");
    assert!(other.stderr.contains("bad certificate"), "{other:?}");
}
