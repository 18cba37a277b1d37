//! What goes wrong with a broker is told with what to do; what was wrong for now goes on.

use rustix::process::Signal;
use serde_json::Value;

use crate::kafka::{
    daemon::{Daemon, wait},
    dry_run::login,
    scrape::Scrape,
    secure::secure,
    stage::Stage,
    topics::{broker, by_key, publish, reading, run, unique},
};

const REST: &str = "handlers: { all: { on: '**', order_by: subject, pass: {} } }
outputs: { o: { file: { path: out } } }";

fn says(daemon: &Daemon<'_>, what: &str) {
    wait(|| daemon.log().contains(what).then_some(()));
}

#[test]
fn f10_a_topic_that_is_missing_is_told_and_read_once_it_is_there() {
    let Some(broker) = broker() else { return };
    let topic = unique("later");
    let stage = Stage::with(&reading(&broker, (&topic, &unique("g")), REST));
    let daemon = Daemon::start(&stage);
    says(&daemon, "create it, or correct its name");
    publish(&stage, &broker, &topic, &by_key(10, 10));
    wait(|| (stage.count_lines("out") == 10).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [10, 10, 0, 0]);
}

#[test]
fn f10_a_broker_that_cannot_be_reached_is_told_and_tried_again() {
    if broker().is_none() {
        return;
    }
    let stage = Stage::with(&reading("127.0.0.1:9", ("t", "g"), REST));
    let daemon = Daemon::start(&stage);
    says(&daemon, "it is tried again, and nothing is lost meanwhile");
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [0, 0, 0, 0]);
}

/// What `/healthz` says of an input that is not connected, once `/readyz` is 503.
fn is_not_ready(daemon: &Daemon<'_>, word: &str, says: &str) -> String {
    let reason = |health: &Value| {
        let part = |name: &str| health["findings"][0][name].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", part("what"), part("figures"))
    };
    let health = daemon.wait_for("/healthz", |health| reason(health).contains(says));
    assert!(
        reason(&health).contains(&format!("The input `in` is not connected: {word}")),
        "{health}"
    );
    assert_eq!(daemon.get("/readyz").0, 503);
    let run = daemon.get("/api/run").1;
    assert_eq!(run["inputs"][0]["state"], word, "{run}");
    health["health"].as_str().unwrap().to_owned()
}

/// It needs none: there is nothing at this port.
#[test]
fn o17_an_input_whose_broker_does_not_answer_is_not_ready_and_says_so() {
    let stage = Stage::with(&reading("127.0.0.1:9", ("t", "g"), REST));
    let daemon = Daemon::start(&stage);
    assert_eq!(is_not_ready(&daemon, "connecting", "no broker answers"), "yellow");
    let scrape = Scrape::of(&daemon);
    let state = |state: &str| format!("greenroom_input_state{{input=\"in\",state=\"{state}\"}}");
    assert_eq!(scrape.value(&state("connecting")), 1.0);
    assert_eq!(scrape.value(&state("assigned")), 0.0);
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [0, 0, 0, 0]);
}

#[test]
fn o17_the_log_says_when_the_group_was_joined_and_what_was_assigned() {
    let Some(broker) = broker() else { return };
    let topic = unique("state");
    let stage = Stage::with(&reading(&broker, (&topic, "state"), REST));
    let daemon = Daemon::start(&stage);
    assert_eq!(is_not_ready(&daemon, "waiting", "no such topic"), "yellow");
    publish(&stage, &broker, &topic, &by_key(10, 10));
    says(&daemon, &format!("assigned: group state: {topic}/0-11"));
    daemon.wait_for("/readyz", |ready| ready["ready"] == true);
    assert_eq!(daemon.get("/healthz").1["health"], "green");
    daemon.signal(Signal::INT);
    daemon.ended();
}

#[test]
fn f10_plain_text_to_a_port_for_tls_and_the_other_way_round_are_told_once_with_what_to_correct() {
    let Some(broker) = broker() else { return };
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/../greenroom-bus/tests/tls/ca.pem");
    let tls = format!("group: g, tls: {{ ca: '{ca}' }},");
    for (at, with, says) in [
        (secure(&broker), "group: g,", "set `tls: {}`"),
        (broker.clone(), tls.as_str(), "does not speak TLS"),
    ] {
        let text = reading(&at, ("t", "g"), REST).replace("group: g,", with);
        let stage = Stage::with(&text);
        let daemon = Daemon::start(&stage);
        assert_eq!(is_not_ready(&daemon, "refused", says), "red");
        let log = daemon.log();
        // The first failure may not say yet what is wrong.
        assert!(log.matches(" WARN ").count() + log.matches("ERROR").count() <= 2, "{log}");
        daemon.signal(Signal::INT);
        daemon.ended().counted(0, [0, 0, 0, 0]);
    }
}

#[test]
fn f09_a_wrong_password_is_told_without_it_and_the_right_one_is_let_in() {
    let Some(broker) = broker() else { return };
    let (topic, group) = (unique("login"), unique("g"));
    let config = |password: &str| {
        let sasl = format!(
            "group: {group}, sasl: {{ mechanism: PLAIN, user: greenroom, password: '{password}' }},"
        );
        let text = reading(&login(&broker), (&topic, &group), REST);
        text.replace(&format!("group: {group},"), &sasl)
    };
    let stage = Stage::with(&config("hunter2"));
    publish(&stage, &broker, &topic, &by_key(10, 10));
    let daemon = Daemon::start(&stage);
    says(&daemon, "correct the credentials");
    assert_eq!(is_not_ready(&daemon, "refused", "correct the credentials"), "red");
    assert!(!daemon.log().contains("hunter2"), "{}", daemon.log());
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [0, 0, 0, 0]);
    stage.write("greenroom.yaml", config("right"));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") == 10).then_some(()));
    daemon.signal(Signal::INT);
    daemon.ended().counted(0, [10, 10, 0, 0]);
}

#[test]
fn f09_check_says_what_is_wrong_with_a_property_and_asks_no_broker() {
    let text = reading("127.0.0.1:9", ("t", "g"), REST);
    let text = text.replace("session.timeout.ms: '2000'", "sesion.timeout.ms: '${WRONG}'");
    let stage = Stage::with(&text);
    let mut command = stage.command("check greenroom.yaml");
    let check = command.env("WRONG", "hunter2").output().unwrap();
    let told = String::from_utf8(check.stderr).unwrap();
    assert_eq!(check.status.code(), Some(2), "{told}");
    assert!(told.contains("does not take property `sesion.timeout.ms`"), "{told}");
    assert!(told.contains("greenroom.yaml:2:") && !told.contains("hunter2"), "{told}");
    assert_eq!(run(&stage, "run greenroom.yaml").code, 2);
}
