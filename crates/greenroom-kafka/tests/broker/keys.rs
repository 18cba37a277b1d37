//! The key of a record is bytes, in every mode (F06): it keeps order, and goes on as it was.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use greenroom_bus::{
    engine::{Engine, HandlerConfig, PoolConfig},
    event::Event,
    handler::simulate::{SimulateConfig, SimulateFactory},
    record::{Mapping, Pick, RecordPart},
    settlement::Ack,
    sink::{Outgoing, Sink},
};
use greenroom_config::units::DurationRange;
use greenroom_kafka::{KafkaOutput, output::KafkaSink, source::KafkaSource};
use rdkafka::{
    message::{Header, OwnedHeaders},
    producer::BaseRecord,
};

use super::{
    fake::broker,
    support::{
        NoLetters, PATIENCE, Publisher, create_topic, options, pull, records, unique, until,
    },
};

const RECORDS: u64 = 300;
const KEYS: u64 = 10;

/// As a Java program writes a long. Most of them are not UTF-8.
fn key(number: u64) -> [u8; 8] {
    (number % KEYS).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn binary(id: &str) -> OwnedHeaders {
    let headers = [("ce_specversion", "1.0"), ("ce_type", "t"), ("ce_source", "s"), ("ce_id", id)];
    headers.into_iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(value) })
    })
}

fn structured(id: &str) -> Vec<u8> {
    let mut json = Vec::new();
    Event::builder(id, "s", "t").data_json(id).build().unwrap().write_json(&mut json);
    json
}

fn by_rule() -> Mapping {
    let mapping = Mapping::new(Pick::literal("t"), Pick::part(RecordPart::Topic));
    mapping.subject(Pick::part(RecordPart::Key).optional())
}

/// Publishes one record of each number, in the mode of this name.
fn publish(broker: &str, topic: &str, mode: &str) {
    let publisher = Publisher::new(broker);
    for number in 0..RECORDS {
        let (id, key) = (number.to_string(), key(number));
        let json = structured(&id);
        let record = BaseRecord::<[u8], [u8], ()>::to(topic).partition(0).key(&key);
        let record = match mode {
            "binary" => record.payload(id.as_bytes()).headers(binary(&id)),
            "structured" => record.payload(&json),
            _ => record.payload(id.as_bytes()),
        };
        publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    }
    publisher.flush();
}

/// From one topic to another, ordered by the key, by handlers that take their time.
async fn pass_on(broker: &str, (from, to): (&str, &str), records: Option<Mapping>) {
    let source = options(broker, from, &[from.to_owned()]);
    let latency = DurationRange { from: Duration::ZERO, to: Duration::from_millis(3) };
    let simulate = SimulateFactory::new(SimulateConfig { latency, ..SimulateConfig::default() });
    let everything = || vec!["**".parse().unwrap()];
    let handler = HandlerConfig {
        order_by: Some("partitionkey".parse().unwrap()),
        ..HandlerConfig::new(everything(), Arc::new(simulate.unwrap()))
    };
    let sink = KafkaSink::open(KafkaOutput::new(broker, to)).unwrap();
    let engine = Engine::builder()
        .input(Box::new(KafkaSource::open(source, records).unwrap()))
        .pool("default", PoolConfig { workers: 8, ..PoolConfig::default() })
        .handler("all", handler)
        .output("o", everything(), Arc::new(sink))
        .dead_letters(Arc::new(NoLetters))
        .build();
    let engine = engine.await.unwrap();
    let control = engine.control();
    let run = tokio::spawn(engine.run());
    let all = || control.progress().settled == RECORDS;
    tokio::task::block_in_place(|| until("all that was published", all));
    control.drain();
    let report = tokio::time::timeout(PATIENCE, run).await.unwrap().unwrap();
    assert_eq!((report.handled, report.warnings), (RECORDS, vec![]));
}

/// Such a key was none: 488 of 1,000 longs of Java were handled without order, and went on without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f06_a_key_that_is_not_utf8_keeps_its_order_and_goes_on_in_every_mode() {
    let broker = broker();
    for mode in ["binary", "structured", "by rule"] {
        let (from, to) = (unique("f06-from"), unique("f06-to"));
        create_topic(&broker, &from, 1);
        create_topic(&broker, &to, 1);
        publish(&broker, &from, mode);
        pass_on(&broker, (&from, &to), (mode == "by rule").then(by_rule)).await;
        let mut last = BTreeMap::new();
        for record in records(&broker, &to) {
            let value = String::from_utf8(record.value.unwrap()).unwrap();
            let number: u64 = value.trim_matches('"').parse().unwrap();
            let of = record.key.unwrap_or_default();
            assert_eq!(of, key(number), "{mode}: the key of {number}");
            let before = last.insert(of, number);
            assert!(before < Some(number), "{mode}: {number} behind {before:?}");
        }
        assert_eq!(last.len() as u64, KEYS, "{mode}");
    }
}

/// When the only record of a topic was published, as it says.
async fn time_of(broker: &str, topic: &str) -> String {
    let source = options(broker, &unique("time"), &[topic.to_owned()]);
    let mapping = Mapping::new(Pick::literal("t"), Pick::part(RecordPart::Topic));
    let mapping = mapping.time(Pick::part(RecordPart::Time));
    let taken = pull(&mut KafkaSource::open(source, Some(mapping)).unwrap(), 1).await.remove(0).1;
    taken.event.unwrap().time().unwrap().to_owned()
}

/// What goes on of a record of yesterday, beside the key, where its input keeps this: the names of
/// headers, and whether the time is the same.
async fn goes_on(broker: &str, headers: Option<&[&str]>, timestamp: bool) -> (Vec<String>, bool) {
    let (from, to) = (unique("f07-from"), unique("f07-to"));
    create_topic(broker, &from, 1);
    create_topic(broker, &to, 1);
    let header = |key, value| Header { key, value: Some(value) };
    let had = binary("1").insert(header("tenant", "blue")).insert(header("hop", "1"));
    let had = had.insert(header("content-type", "text/plain"));
    let yesterday = SystemTime::now() - Duration::from_secs(24 * 3_600);
    let millis = yesterday.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let publisher = Publisher::new(broker);
    let record = BaseRecord::<[u8], [u8], ()>::to(&from).partition(0).payload(b"7");
    let record = record.headers(had).timestamp(millis);
    publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    publisher.flush();
    let mut source = options(broker, &from, std::slice::from_ref(&from));
    source.keep_headers = headers.map(|names| names.iter().map(|name| name.to_string()).collect());
    source.keep_timestamp = timestamp;
    let taken = pull(&mut KafkaSource::open(source, None).unwrap(), 1).await.remove(0).1;
    let sink = KafkaSink::open(KafkaOutput::new(broker, &to)).unwrap();
    let (event, pool, ack) = (taken.event.unwrap(), "p".into(), Ack::detached());
    sink.accept(Outgoing { event, pool, attempt: 1, line: None, fence: None, ack }).await;
    sink.finish().await.unwrap();
    let names = records(broker, &to).remove(0).headers.into_iter().map(|(name, _)| name);
    let mut names: Vec<_> = names.filter(|name| !name.starts_with("ce_")).collect();
    names.sort();
    (names, time_of(broker, &from).await == time_of(broker, &to).await)
}

#[tokio::test]
async fn f07_headers_and_timestamps_of_records_go_on_where_an_input_keeps_them() {
    let broker = broker();
    for (headers, timestamp, names) in [
        (None, false, &["content-type"][..]),
        (Some(&["all"][..]), true, &["content-type", "hop", "tenant"]),
        (Some(&["tenant", "content-type"]), false, &["content-type", "tenant"]),
    ] {
        let (gone_on, is_same_time) = goes_on(&broker, headers, timestamp).await;
        assert!(gone_on.iter().eq(names), "{gone_on:?}");
        assert_eq!(is_same_time, timestamp);
    }
}

#[tokio::test]
async fn o06_a_plain_traceparent_is_read_in_every_mode() {
    let broker = broker();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let plain =
        |headers: OwnedHeaders| headers.insert(Header { key: "traceparent", value: Some(parent) });
    let name = unique("o06");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    let json = structured("2");
    let to = || BaseRecord::<[u8], [u8], ()>::to(&name).partition(0);
    for record in [
        to().payload(b"1").headers(plain(binary("1"))),
        to().payload(&json).headers(plain(OwnedHeaders::new())),
    ] {
        publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    }
    publisher.flush();
    for records in [None, Some(by_rule())] {
        let source = options(&broker, &unique("o06-group"), std::slice::from_ref(&name));
        for (_, taken) in pull(&mut KafkaSource::open(source, records).unwrap(), 2).await {
            let traced = taken.event.unwrap().trace_context().map(|trace| trace.to_string());
            assert_eq!(traced.as_deref(), Some(parent));
        }
    }
}

#[tokio::test]
async fn f06_an_event_says_what_the_key_of_its_record_is_and_nothing_where_there_is_none() {
    let broker = broker();
    let name = unique("f06-said");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    let own = || binary("1").insert(Header { key: "ce_partitionkey", value: Some("own") });
    let to = || BaseRecord::<[u8], [u8], ()>::to(&name).partition(0).payload(b"7");
    for record in [
        to().headers(binary("1")).key(&[0xff, 0]),
        to().headers(own()).key(b"c-7"),
        to().headers(own()),
        to().headers(binary("1")).key(b""),
        to().headers(binary("1")),
    ] {
        publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    }
    publisher.flush();
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let events: Vec<Event> =
        pull(&mut source, 5).await.into_iter().map(|(_, taken)| taken.event.unwrap()).collect();
    let said = events.iter().map(|event| event.extension("partitionkey").cloned());
    let texts = [Some("base64:/wA="), Some("c-7"), Some("own"), Some("base64:"), None];
    assert!(said.eq(texts.map(|text| text.map(Into::into))));
    // An output that names the attribute writes the bytes too.
    let to = unique("f06-written");
    create_topic(&broker, &to, 1);
    let key = Some("partitionkey".to_owned());
    let sink = KafkaSink::open(KafkaOutput { key, ..KafkaOutput::new(&broker, &to) });
    let sink = sink.unwrap();
    for event in events {
        let (pool, ack) = ("p".into(), Ack::detached());
        sink.accept(Outgoing { event, pool, attempt: 1, line: None, fence: None, ack }).await;
    }
    sink.finish().await.unwrap();
    let written = records(&broker, &to).into_iter().map(|record| record.key);
    let bytes: [Option<&[u8]>; 5] = [Some(&[0xff, 0]), Some(b"c-7"), Some(b"own"), Some(b""), None];
    assert!(written.eq(bytes.map(|key| key.map(<[u8]>::to_vec))));
}
