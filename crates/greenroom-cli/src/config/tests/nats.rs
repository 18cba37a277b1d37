//! `nats` inputs: the same options in every build, and what a build does with them.

use greenroom_nats::kinds::{NatsInput, Partitions};

use super::*;

fn input(options: &str) -> String {
    format!(
        "inputs: {{ in: {{ nats: {{ servers: 'localhost:4222', stream: S, consumer: c, {options} }} }} }}\n\
         handlers: {{ h: {{ on: '**', pass: {{}} }} }}\n"
    )
}

fn output(options: &str) -> String {
    root(&format!("outputs: {{ o: {{ nats: {{ servers: 'localhost:4222', {options} }} }} }}"))
}

fn nats_input(text: &str) -> NatsInput {
    let config = load_as_written(text).good();
    config.inputs[0].kind.downcast_ref::<NatsInput>().unwrap().clone()
}

#[test]
fn n01_every_option_takes_what_it_should_and_refuses_the_rest() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("subjects", "[a.*, 'b.>']", &["{}", "1"]),
        ("subject", "a.*", &["[]"]),
        ("start", "latest", &["now", "1"]),
        ("start", "2026-01-31T12:00:00Z", &["2026-01-31"]),
        ("capacity", "1", &["0", "all"]),
        ("ack_wait", "200ms", &["199ms", "25h", "30"]),
        ("batch", "1", &["0"]),
        ("batch_bytes", "1MiB", &["0", "2GiB"]),
        ("hold", "64KiB", &["0"]),
        ("key", "{ token: 2 }", &["{ token: 0 }", "{}", "subject", "{ token: 1, header: h }"]),
        ("key", "{ subject: {} }", &["{ subject: 1 }"]),
        ("key", "{ template: '{2}.{3}' }", &["{ template: 1 }"]),
        ("key", "{ header: X-Key }", &["{ header: '' }"]),
        ("auth", "{ token: t }", &["t", "{}", "{ token: t, nkey: s }"]),
        ("auth", "{ user: { name: u, password: p } }", &["{ user: u }", "{ user: { name: u } }"]),
        ("auth", "{ credentials: c }", &["{ creds: c }"]),
        (
            "tls",
            "{ ca: a, cert: b, key: c, required: false }",
            &["true", "{ cert: b }", "{ key: c }"],
        ),
        ("domain", "hub", &["[a]"]),
        ("connect_within", "1s", &["0s", "1"]),
    ];
    for (name, good, bad) in rows {
        let loaded = load_as_written(&input(&format!("{name}: {good}")));
        assert_eq!(loaded.problems.errors(), 0, "{name}: {good}: {}", loaded.text());
        for bad in *bad {
            let loaded = load_as_written(&input(&format!("{name}: {bad}")));
            assert!(loaded.problems.errors() > 0, "{name}: {bad} is taken");
        }
    }
    let rows: &[(&str, &[&str])] = &[
        ("subject: 'orders.{subject}.{type}'", &["subject: [a]", "mode: binary"]),
        ("subject: a, mode: structured", &["subject: a, mode: batch"]),
        ("subject: a, concurrency: 4096", &["subject: a, concurrency: 4097"]),
        ("subject: a, backoff: 1s..2s, probe: 1s..1m", &["subject: a, backoff: 2s..1s"]),
        ("subject: a, auth: { nkey: s }, tls: {}", &["subject: a, auth: {}"]),
    ];
    for (good, bad) in rows {
        let loaded = load_as_written(&output(good));
        assert_eq!(loaded.problems.errors(), 0, "{good}: {}", loaded.text());
        for bad in *bad {
            assert!(load_as_written(&output(bad)).problems.errors() > 0, "{bad} is taken");
        }
    }
    for (what, bad) in [("stream: S", "stream: a.b"), ("consumer: c", "consumer: 'a b'")] {
        let loaded = load_as_written(&input("").replace(what, bad));
        assert!(loaded.text().contains("is no name of a"), "{}", loaded.text());
    }
}

#[test]
fn n03_partitions_and_the_place_of_their_number_belong_together() {
    let of = |partitions: &str| {
        nats_input(&input(&format!("subjects: 'o.{{partition}}.*', partitions: {partitions}")))
    };
    assert_eq!(of("0..3").partitions, Some(Partitions(vec![0, 1, 2, 3])));
    assert_eq!(of("'8, 0..1'").partitions, Some(Partitions(vec![0, 1, 8])));
    for bad in ["'3..0'", "x", "'0,0'", "'0..1024'", "'1,'", "'0..4294967295'"] {
        let text = input(&format!("subjects: 'o.{{partition}}.*', partitions: {bad}"));
        let loaded = load_as_written(&text);
        assert!(loaded.text().contains("are no partitions"), "{bad}: {}", loaded.text());
    }
    for half in ["subjects: 'o.{partition}.*'", "partitions: 0..3"] {
        let loaded = load_as_written(&input(half));
        assert!(loaded.text().contains("belong together"), "{half}: {}", loaded.text());
    }
}

#[test]
fn n05_nothing_prints_credentials() {
    let text = input("auth: { user: { name: ann, password: hunter2 } }")
        .replace("localhost:4222", "nats://ann:hunter2@localhost:4222");
    let shown = format!("{:?}", nats_input(&text));
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn m05_the_key_of_a_message_is_what_the_input_names() {
    let rule = |key: &str| {
        let records = "records: { type: t, source: { topic: {} }, subject: { key: {} } }";
        input(key).replacen(" } } }", &format!(" }}, {records} }} }}"), 1)
    };
    assert_eq!(
        load_as_written(&rule("key: { token: 2 }, batch: 1")).problems.summary(),
        "no problems"
    );
    let loaded = load_as_written(&rule("batch: 1"));
    assert!(loaded.text().contains("a message of this input has no key"), "{}", loaded.text());
}

#[cfg(feature = "nats")]
#[test]
fn c02_check_looks_at_files_and_keys_and_asks_no_server() {
    load(&input("key: { template: '{2}-{3}' }")).good();
    load(&output("subject: 'orders.{subject}.{/a/b}'")).good();
    for (text, says) in [
        (input("key: { template: plain }"), "is no template of a key"),
        (input("tls: { ca: nowhere.pem }"), "cannot read"),
        (output("subject: a, tls: { ca: nowhere.pem }"), "cannot read"),
        (output("subject: 'orders.*'"), "is no subject to publish to"),
        (output("subject: 'orders.{'"), "is no subject to publish to"),
    ] {
        let loaded = load(&text);
        assert_eq!(loaded.problems.errors(), 1, "{}", loaded.text());
        assert!(loaded.text().contains(says), "{}", loaded.text());
    }
}
