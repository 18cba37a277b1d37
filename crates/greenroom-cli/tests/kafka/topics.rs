//! Topics of a real broker, filled and emptied by the program itself.

use std::{
    collections::HashMap,
    env,
    io::{self, Write},
    process::{self, Stdio},
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::kafka::{
    daemon::{Daemon, wait},
    stage::{Run, Stage, end, event},
};

/// The broker, where one is named. Otherwise it is said that nothing was tested.
pub(crate) fn broker() -> Option<String> {
    static SAID: Once = Once::new();
    let broker = env::var("GREENROOM_KAFKA").ok().filter(|broker| !broker.is_empty());
    if broker.is_none() {
        SAID.call_once(|| {
            // Past the capture of test output.
            let _ = writeln!(
                io::stderr(),
                "NOT RUN: the tests of the program against a Kafka broker, for want of one. To run \
                 them: GREENROOM_KAFKA=$(scripts/kafka up) cargo test -p greenroom-cli --features \
                 kafka --test program kafka::"
            );
        });
    }
    broker
}

/// A name of a topic or group that no other run has.
pub(crate) fn unique(name: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{name}-{}-{now}-{number}", process::id())
}

/// So many events of so many keys, in turn; `n` counts those of a key.
pub(crate) fn by_key(count: usize, keys: usize) -> Vec<Value> {
    let made = |n: usize| {
        let data = json!({ "n": n / keys });
        event(&format!("e{n}"), "order.placed", &format!("k{}", n % keys), data)
    };
    (0..count).map(made).collect()
}

/// Publishes events by the program, each with its subject as the key.
pub(crate) fn publish(stage: &Stage, broker: &str, topic: &str, events: &[Value]) {
    stage.write_events("to-publish", events);
    let config = format!(
        "
inputs: {{ i: {{ file: {{ path: to-publish }} }} }}
handlers: {{ all: {{ on: '**', order_by: subject, pass: {{}} }} }}
outputs: {{ o: {{ kafka: {{ brokers: '{broker}', topic: {topic}, key: subject }} }} }}
dead_letters: {{ file: {{ path: not-published }} }}
"
    );
    stage.write("publish.yaml", config);
    let published = run(stage, "run publish.yaml --report json");
    let count = events.len() as u64;
    published.counted(0, [count, count, 0, 0]);
}

/// A configuration that reads a topic as a group, and does the rest.
pub(crate) fn reading(broker: &str, (topic, group): (&str, &str), rest: &str) -> String {
    let input = input(broker, (topic, group), "");
    format!("inputs:\n  in: {input}\n{rest}\nadmin: {{ listen: 127.0.0.1:0 }}\n")
}

/// An input that reads a topic as a group, with more in it. A member that was killed is missed
/// soon, and a topic that is new is found soon.
pub(crate) fn input(broker: &str, (topic, group): (&str, &str), more: &str) -> String {
    format!(
        "{{ kafka: {{ brokers: '{broker}', group: {group}, topics: {topic}, properties: {{ \
         session.timeout.ms: '2000', heartbeat.interval.ms: '300', \
         topic.metadata.refresh.interval.ms: '500', \
         topic.metadata.refresh.fast.interval.ms: '100' }} }}{more} }}"
    )
}

/// What a topic holds, read by a group of its own until there are so many.
pub(crate) fn all_of(broker: &str, topic: &str, count: usize) -> Vec<Value> {
    let rest = "handlers: { all: { on: '**', order_by: subject, pass: {} } }\n\
                outputs: { o: { file: { path: out } } }";
    let stage = Stage::with(&reading(broker, (topic, &unique("all")), rest));
    let daemon = Daemon::start(&stage);
    wait(|| (stage.count_lines("out") >= count).then_some(()));
    daemon.signal(Signal::INT);
    assert_eq!(daemon.ended().code, 0);
    stage.read("out")
}

/// The events of each key are in their order.
pub(crate) fn assert_order(events: &[Value]) {
    let mut last = HashMap::new();
    for event in events {
        let (key, n) = (event["subject"].as_str().unwrap(), event["data"]["n"].as_u64().unwrap());
        let before = last.insert(key, n);
        assert!(before.is_none_or(|before| before < n), "{key}: {n} after {before:?}");
    }
}

/// Runs the program to its end with these arguments.
pub(crate) fn run(stage: &Stage, arguments: &str) -> Run {
    let started = Instant::now();
    let mut command = stage.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Run::of(end(command.spawn().unwrap()), started)
}

/// An input that reads these events. Nothing where no broker is named.
pub(crate) fn filled(name: &str, events: &[Value]) -> Option<String> {
    let broker = broker()?;
    let topic = unique(name);
    publish(&Stage::new(), &broker, &topic, events);
    Some(input(&broker, (&topic, &unique("g")), ""))
}
