//! What goes wrong with a broker is told with what to do; what was wrong for now goes on.

use rustix::process::Signal;

use crate::{
    daemon::{Daemon, wait},
    dry_run::login,
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
