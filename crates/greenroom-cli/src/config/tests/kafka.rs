//! `kafka` inputs and outputs: the same options in every build, and what a build does with them.

use std::time::SystemTime;

use greenroom_bus::source::StartAt;
use greenroom_kafka::kinds::KafkaInput;

use super::*;

fn input(options: &str) -> String {
    format!(
        "inputs: {{ in: {{ kafka: {{ brokers: 'localhost:9092', group: g, topics: t, {options} }} }} }}\n\
         handlers: {{ h: {{ on: '**', pass: {{}} }} }}\n"
    )
}

fn output(options: &str) -> String {
    root(&format!(
        "outputs: {{ o: {{ kafka: {{ brokers: 'localhost:9092', topic: t, {options} }} }} }}"
    ))
}

fn kafka_input(text: &str) -> KafkaInput {
    let config = load_as_written(text).good();
    config.inputs[0].kind.downcast_ref::<KafkaInput>().unwrap().clone()
}

#[test]
fn f10_every_option_of_an_input_and_an_output_takes_what_it_should_and_refuses_the_rest() {
    type Wrap = fn(&str) -> String;
    let tls = "{ ca: ca.pem, cert: a.pem, key: a.key, key_password: x, check_host: false }";
    let rows: &[(Wrap, &str, &str, &[&str])] = &[
        (input, "start", "latest", &["newest", "1", "2026-01-31", "'yesterday 12:00'"]),
        (input, "start", "2026-01-31T12:00:00+01:00", &["2026-01-31T25:00:00Z"]),
        (input, "from", "parallel-consumer", &["me", "true", "parallel_consumer"]),
        (input, "protocol", "consumer", &["eager", "{}"]),
        (input, "instance_id", "billing-1", &["[a]", "''"]),
        (input, "instanceId", "billing-1", &["{}"]),
        (input, "isolation", "read_uncommitted", &["serializable"]),
        (input, "remember_done", "false", &["no way", "1"]),
        (input, "metadata_limit", "16", &["15", "many", "1_048_577"]),
        (input, "drain_budget", "0s", &["10", "25h"]),
        (
            input,
            "guard",
            "{ topic: later, events: 10, every: 5m }",
            &["later", "{}", "{ topic: t, events: 0 }", "{ topic: t, every: 25h }"],
        ),
        (input, "tls", tls, &["true", "{ ca: 1 }", "{ cert: a }", "{ key: a }", "{ insecure: 1 }"]),
        (output, "tls", "{}", &["true", "{ cert: a }"]),
        (
            input,
            "sasl",
            "{ mechanism: PLAIN, user: u, password: p }",
            &["{ user: u }", "{ user: u, password: p, mechanism: plain }", "p"],
        ),
        (output, "sasl", "{ user: u, password: p }", &["{ password: p }"]),
        (output, "key", "/order/id", &["[a]", "Order-Id", "/a/~2", "specversion"]),
        (output, "mode", "structured", &["batch"]),
        (input, "keep_headers", "[a, b]", &["{}", "[]"]),
        (input, "keep_headers", "all", &["[{}]"]),
        (input, "keep_timestamp", "true", &["now"]),
        (output, "partitioner", "crc32", &["murmur", "consistent_random"]),
        (output, "max_message", "8MiB", &["999", "2GiB", "much"]),
        (output, "compression", "zstd", &["zip", "true"]),
        (
            output,
            "properties",
            "{ linger.ms: '20' }",
            &[
                "{ compression.type: gzip }",
                "{ partitioner: random }",
                "{ message.max.bytes: '5' }",
                "[a]",
            ],
        ),
        (
            input,
            "properties",
            "{ max.poll.interval.ms: '600000', security.protocol: ssl }",
            &[
                "{ group.id: x }",
                "{ group.protocol: x }",
                "{ group.instance.id: x }",
                "{ bootstrap.servers: x }",
                "{ auto.offset.reset: latest }",
                "{ isolation.level: x }",
            ],
        ),
    ];
    for (wrap, name, good, bad) in rows {
        let loaded = load_as_written(&wrap(&format!("{name}: {good}")));
        assert_eq!(loaded.problems.errors(), 0, "{name}: {good}: {}", loaded.text());
        for bad in *bad {
            let loaded = load_as_written(&wrap(&format!("{name}: {bad}")));
            assert!(loaded.problems.errors() > 0, "{name}: {bad} is taken");
        }
    }
}

#[test]
fn f10_an_input_names_brokers_group_and_topics_and_begins_where_it_is_told() {
    let several = "inputs: { in: { kafka: { brokers: ['a:1', '[::1]:2'], group: g, topic: [t, '^orders\\..*'], \
                   start: 2026-01-31T12:00:00Z } } }\nhandlers: { h: { on: '**', pass: {} } }\n";
    let kafka = kafka_input(several);
    assert_eq!(kafka.brokers, ["a:1", "[::1]:2"]);
    assert_eq!(kafka.topics, ["t", "^orders\\..*"]);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800);
    assert_eq!(kafka.start, StartAt::Time(time));
    for (brokers, says) in [
        ("localhost", "`localhost` is no broker"),
        ("'a:1,b:2'", "`a:1,b:2` is no broker"),
        ("'http://a:1'", "`http://a:1` is no broker"),
        ("':9092'", "`:9092` is no broker"),
    ] {
        let text = input("").replace("'localhost:9092'", brokers);
        let loaded = load_as_written(&text);
        assert!(loaded.text().contains(says), "{}", loaded.text());
    }
    let missing = "inputs: { in: { kafka: {} } }\nhandlers: { h: { on: '**', pass: {} } }\n";
    let text = load_as_written(missing).text();
    for option in ["`brokers`", "`group`", "`topics`"] {
        assert!(text.contains(option), "{text}");
    }
}

#[test]
fn f09_nothing_prints_a_password_or_the_value_of_a_property() {
    let text = input(
        "sasl: { user: '${SECRET}', password: hunter2 }, tls: { key: k, cert: c, key_password: hunter2 }, \
         properties: { client.id: hunter2 }",
    );
    let shown = format!("{:?}", kafka_input(&text));
    assert!(!shown.contains("hunter2"), "{shown}");
    for text in [
        input("properties: { group.id: hunter2 }"),
        input("sasl: { user: u, password: p }, properties: { sasl.password: hunter2 }"),
        input("tls: {}, properties: { ssl.key.password: hunter2 }"),
        input("tls: {}, properties: { security.protocol: hunter2 }"),
    ] {
        let loaded = load_as_written(&text);
        assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
        let told = loaded.lines().join("\n");
        assert!(told.contains("has an option of its own"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn m05_attributes_come_from_what_an_input_has() {
    let rule = |text: &str| {
        input("").replacen(" } } }", &format!(" }}, records: {{ source: s, {text} }} }} }}"), 1)
    };
    let good = "type: { header: kind }, subject: { key: {} }, time: { time: {} }, \
                extensions: { topic: { topic: {} }, id2: { pointer: /id } }";
    assert_eq!(load_as_written(&rule(good)).problems.summary(), "no problems");
    for part in ["key", "topic", "time"] {
        let text = format!("records: {{ source: s, type: {{ {part}: {{}} }} }}");
        let loaded = load(&records(&text));
        let expected = format!("a line has no {part}");
        assert!(loaded.text().contains(&expected), "{}", loaded.text());
    }
    let loaded = load_as_written(&rule("type: { path: {} }"));
    assert!(loaded.text().contains("a record has no path"), "{}", loaded.text());
}

#[cfg(not(feature = "kafka"))]
#[test]
fn c02_a_build_without_kafka_refuses_each_block_with_the_line_that_installs_it() {
    for (text, place) in [(input(""), "1:17"), (output(""), "3:17")] {
        let loaded = load(&text);
        assert_eq!(loaded.lines(), [format!("{place} this greenroom was built without `kafka`")]);
        let install = "install one that has it: cargo install greenroom-cli --features kafka";
        assert!(loaded.text().contains(install), "{}", loaded.text());
    }
    // Also beside other problems.
    let loaded = load(&root("outputs: { o: { kafka: {} } }"));
    assert!(loaded.text().contains("was built without `kafka`"), "{}", loaded.text());
    assert!(loaded.text().contains("`brokers`"), "{}", loaded.text());
}

#[cfg(feature = "kafka")]
#[test]
fn c02_topics_and_patterns_that_no_broker_takes_are_told_at_their_place() {
    let topics = |topics: &str| input("").replace("topics: t,", &format!("topics: {topics},"));
    for good in ["[a.b_c-9, '^orders', '^(a|b)[0-9]+$']", "'^.*'"] {
        load(&topics(good)).good();
    }
    let name = "no topic can have this name: 1 to 249 letters";
    let pattern = "this pattern is no extended regular expression of POSIX";
    let to_topic = |topic: &str| output("").replace("topic: t,", &format!("topic: {topic},"));
    for (text, place, says) in [
        (topics("[a, 'a b/c']"), "1:75 ", name),
        (topics("'..'"), "1:71 ", name),
        (topics("[t, '^((']"), "1:75 ", pattern),
        (topics("'^[a'"), "1:71 ", pattern),
        (input("guard: { topic: 'a b' }"), "1:90 ", name),
        (to_topic("'a b'"), "3:60 ", name),
    ] {
        let loaded = load(&text);
        assert!(loaded.lines()[0].starts_with(&format!("{place}{says}")), "{}", loaded.text());
        assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
    }
}

#[cfg(feature = "kafka")]
#[test]
fn c02_check_asks_librdkafka_and_no_broker() {
    load(&input("tls: {}, sasl: { user: u, password: p }")).good();
    load(&output("compression: zstd, properties: { linger.ms: '20' }")).good();
    for (text, place, says) in [
        (
            input("properties: { frobnicate: hunter2 }"),
            "1:88",
            "does not take property `frobnicate`",
        ),
        (input("properties: { enable.auto.commit: hunter2 }"), "1:88", "cannot be set here"),
        (input("properties: { enable.partition.eof: hunter2 }"), "1:88", "promises would not hold"),
        (output("properties: { message.timeout.ms: hunter2 }"), "3:", "cannot be set here"),
        (output("properties: { transactional.id: hunter2 }"), "3:", "promises would not hold"),
        (output("properties: { acks: 'hunter2' }"), "3:", "`acks`"),
        (input("tls: { ca: nowhere.pem }"), "1:", "cannot read"),
        (input("tls: { ca: c.yaml }"), "1:", "ssl.ca.location"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("c.yaml"), &text).unwrap();
        let loaded = load_with("c.yaml", &text, &[], directory.path());
        let told = loaded.lines().join("\n");
        assert_eq!(loaded.problems.errors(), 1, "{text}: {told}");
        assert!(told.starts_with(place) && told.contains(says), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
    }
}
