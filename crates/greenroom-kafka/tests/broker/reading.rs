//! Where a group begins, what it finds, and what records become.

use std::time::{Duration, SystemTime};

use greenroom_bus::{
    event::Data,
    record::{Mapping, Pick, RecordPart},
    settlement::{Outcome, Settled},
    source::{InputState, Partition, Pull, Source},
};
use greenroom_kafka::source::{KafkaSource, StartAt};
use rdkafka::{
    message::{Header, OwnedHeaders},
    producer::BaseRecord,
};

use super::fake::{broker, spoil_name};
use super::support::{
    Publisher, committed, create_topic, delete_topic, event, group, options, positions, pull,
    real_broker, unique, until,
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);

fn numbered(publisher: &Publisher, topic: &str, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| publisher.event(topic, 0, &event(number, "k")));
    publisher.flush();
}

#[tokio::test]
async fn f10_a_topic_that_comes_later_is_read_from_its_beginning() {
    let broker = broker();
    let name = unique("later");
    let mut options = options(&broker, &name, std::slice::from_ref(&name));
    options.properties.set("allow.auto.create.topics", "false");
    let mut source = KafkaSource::open(options, None).unwrap();
    let mut nothing = Vec::new();
    let waits = tokio::time::timeout(Duration::from_secs(2), source.pull(&mut nothing));
    assert!(waits.await.is_err(), "there is no topic yet, and that is no failure");
    create_topic(&broker, &name, 1);
    numbered(&Publisher::new(&broker), &name, 0..5);
    assert_eq!(positions(&pull(&mut source, 5).await, 0), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn f10_a_pattern_takes_topics_that_come_later() {
    let broker = broker();
    let name = unique("pattern");
    let publisher = Publisher::new(&broker);
    create_topic(&broker, &format!("{name}-a"), 1);
    numbered(&publisher, &format!("{name}-a"), 0..3);
    let topics = [format!("^{name}-.*")];
    let mut source = KafkaSource::open(options(&broker, &name, &topics), None).unwrap();
    assert_eq!(positions(&pull(&mut source, 3).await, 0), [0, 1, 2]);
    create_topic(&broker, &format!("{name}-b"), 1);
    numbered(&publisher, &format!("{name}-b"), 0..2);
    let taken = pull(&mut source, 2).await;
    assert_eq!((positions(&taken, 0), positions(&taken, 1)), (vec![], vec![0, 1]));
}

#[tokio::test]
async fn f10_a_group_begins_where_it_is_told() {
    let broker = broker();
    let name = unique("start");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    numbered(&publisher, &name, 0..5);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let between = SystemTime::now();
    tokio::time::sleep(Duration::from_millis(20)).await;
    numbered(&publisher, &name, 5..8);
    let open = |start: StartAt, group: &str| {
        let mut options = options(&broker, &format!("{name}-{group}"), std::slice::from_ref(&name));
        options.start = start;
        KafkaSource::open(options, None).unwrap()
    };
    let mut earliest = open(StartAt::Earliest, "earliest");
    assert_eq!(positions(&pull(&mut earliest, 8).await, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    let mut at = open(StartAt::Time(between), "time");
    assert_eq!(positions(&pull(&mut at, 3).await, 0), [5, 6, 7]);
    let mut latest = open(StartAt::Latest, "latest");
    let commits = latest.committer().unwrap();
    super::support::until("an assignment", || !commits.partitions().is_empty());
    // Where it began is committed, so that nothing is left out if it ends before the next record.
    commits.commit().await.unwrap();
    drop((latest, commits));
    numbered(&publisher, &name, 8..10);
    let mut again = open(StartAt::Latest, "latest");
    assert_eq!(positions(&pull(&mut again, 2).await, 0), [8, 9]);
}

/// The client goes back to the beginning then, and says nothing.
#[tokio::test]
async fn f10_a_topic_that_is_made_anew_while_it_is_read_is_read_from_its_beginning() {
    // Answers of the one in this process, for an offset beyond the end, are not understood.
    let Some(broker) = real_broker() else { return };
    let name = unique("anew");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    numbered(&publisher, &name, 0..20);
    let mut options = options(&broker, &name, std::slice::from_ref(&name));
    options.drain_budget = Duration::from_secs(1);
    let mut source = KafkaSource::open(options, None).unwrap();
    let commits = source.committer().unwrap();
    pull(&mut source, 20).await;
    let before = source.receipts().unwrap();
    (0..15).for_each(|at| before.settled(at, HANDLED));
    commits.commit().await.unwrap();
    delete_topic(&broker, &name);
    create_topic(&broker, &name, 1);
    numbered(&Publisher::new(&broker), &name, 100..105);
    let mut read = Vec::new();
    while read.len() < 5 {
        let mut taken = Vec::new();
        if source.pull(&mut taken).await.unwrap() == Pull::Revoke {
            assert_eq!(source.revoking(), [Partition(0)]);
            source.revoked(Partition(0));
        }
        read.extend(taken.into_iter().map(|taken| taken.event.unwrap().id().to_owned()));
    }
    assert_eq!(read, ["100", "101", "102", "103", "104"]);
    // Of the records that are no more, and were in hand for too long.
    (15..20).for_each(|at| before.settled(at, HANDLED));
    let receipts = source.receipts().unwrap();
    (0..3).for_each(|at| receipts.settled(at, HANDLED));
    commits.commit().await.unwrap();
    assert_eq!(committed(&group(&broker, &name), &name, 0), Some((3, String::new())));
}

/// A broker removes it in the background, and says so in its metadata alone.
#[tokio::test]
async fn o17_a_topic_that_is_deleted_while_it_is_read_is_told_as_missing_and_read_once_it_is_back()
{
    let Some(broker) = real_broker() else { return };
    let name = unique("deleted");
    create_topic(&broker, &name, 1);
    numbered(&Publisher::new(&broker), &name, 0..3);
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let status = source.status().unwrap();
    pull(&mut source, 3).await;
    delete_topic(&broker, &name);
    assert_eq!(source.pull(&mut Vec::new()).await.unwrap(), Pull::Revoke);
    assert_eq!(source.revoking(), [Partition(0)]);
    source.revoked(Partition(0));
    until("the topic is missing", || status.get().state == InputState::Waiting);
    let detail = status.get().detail;
    assert!(detail.starts_with(&format!("no such topic: {name};")), "{detail}");
    create_topic(&broker, &name, 1);
    numbered(&Publisher::new(&broker), &name, 100..103);
    let again = pull(&mut source, 3).await;
    let ids = again.iter().map(|taken| taken.1.event.as_ref().unwrap().id());
    assert!(ids.eq(["100", "101", "102"]));
}

#[tokio::test]
async fn m05_tombstones_headers_and_keys_become_parts_of_events() {
    let broker = broker();
    let name = unique("m05");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    let header = |key: &'static str, value: &'static [u8]| Header { key, value: Some(value) };
    let send = |record: BaseRecord<'_, str, [u8], ()>| {
        publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    };
    let to = || BaseRecord::<str, [u8], ()>::to(&name).partition(0);
    let kind = || OwnedHeaders::new().insert(header("kind", b"gone"));
    send(to().key("c-7").headers(kind()));
    send(to().key("c-8").payload(b"{\n \"n\": 1}").headers(kind()));
    send(to().payload(b"no key").headers(OwnedHeaders::new().insert(header("kind", b"\xff\xfe"))));
    publisher.flush();
    let mapping =
        Mapping::new(Pick::part(RecordPart::Header("kind".into())), Pick::part(RecordPart::Topic));
    let mapping =
        mapping.subject(Pick::part(RecordPart::Key).optional()).time(Pick::part(RecordPart::Time));
    let options = options(&broker, &name, std::slice::from_ref(&name));
    let mut source = KafkaSource::open(options, Some(mapping)).unwrap();
    let taken = pull(&mut source, 3).await;
    let first = taken[0].1.event.as_ref().unwrap();
    assert_eq!((first.ty(), first.source(), first.data()), ("gone", &*name, &Data::None));
    assert_eq!(first.subject().map(|of| &**of), Some("c-7"));
    assert_eq!(first.id(), format!("{name}-0-0"));
    let second = taken[1].1.event.as_ref().unwrap();
    assert_eq!(second.data_bytes().as_deref(), Some(&b"{\n \"n\": 1}"[..]), "as it was");
    let third = taken[2].1.event.as_ref().unwrap_err();
    assert_eq!(third.raw, b"no key");
    assert!(third.reason.contains("the header `kind` is not UTF-8 text"), "{}", third.reason);
}

#[tokio::test]
async fn z12_a_record_whose_header_has_a_name_that_is_no_text_is_no_event_and_others_come() {
    let fake = super::fake::fake();
    let (broker, name) = (fake.bootstrap_servers(), "names");
    fake.create_topic(name, 1);
    let publisher = Publisher::new(&broker);
    let headers = OwnedHeaders::new().insert(Header { key: "a-name", value: Some("x") });
    let record = BaseRecord::<str, [u8], ()>::to(name).partition(0).payload(b"{}").headers(headers);
    publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    publisher.flush();
    publisher.event(name, 0, &event(1, "k"));
    publisher.flush();
    spoil_name(&fake, name, "a-name");
    let mapping = Mapping::new(Pick::literal("t"), Pick::part(RecordPart::Topic));
    for records in [None, Some(mapping)] {
        let is_mapped = records.is_some();
        let options = options(&broker, &format!("g-{is_mapped}"), &[name.to_owned()]);
        let mut source = KafkaSource::open(options, records).unwrap();
        let taken = pull(&mut source, 2).await;
        let first = taken[0].1.event.as_ref().unwrap_err();
        assert_eq!((&*first.raw, taken[1].1.position), (&b"{}"[..], 1));
        assert!(first.reason.contains("is not UTF-8 text"), "{}", first.reason);
        assert!(taken[1].1.event.is_ok());
    }
}

#[tokio::test]
async fn z12_what_is_no_event_is_given_with_its_bytes() {
    let broker = broker();
    let name = unique("z12");
    create_topic(&broker, &name, 1);
    let publisher = Publisher::new(&broker);
    let headers = |id: &'static [u8]| {
        let header = |key: &'static str, value: &'static [u8]| Header { key, value: Some(value) };
        let headers = OwnedHeaders::new().insert(header("ce_specversion", b"1.0"));
        let headers = headers.insert(header("ce_type", b"t")).insert(header("ce_source", b"s"));
        headers.insert(header("ce_id", id))
    };
    let to = || BaseRecord::<str, [u8], ()>::to(&name).partition(0);
    for record in [
        to().payload(b"{ no json"),
        to().payload(b""),
        to().key("tombstone"),
        to().payload(b"x").headers(headers(b"\xff")),
        to().payload(b"x").headers(headers(b"")),
        to().payload(b"\x00\x01").key("k").headers(headers(b"good")),
    ] {
        publisher.0.send(record).map_err(|(error, _)| error).unwrap();
    }
    publisher.flush();
    let mut source =
        KafkaSource::open(options(&broker, &name, std::slice::from_ref(&name)), None).unwrap();
    let taken = pull(&mut source, 6).await;
    let (bad, good) = taken.split_at(5);
    let raw: Vec<&[u8]> =
        bad.iter().map(|(_, taken)| &*taken.event.as_ref().unwrap_err().raw).collect();
    assert_eq!(raw, [&b"{ no json"[..], b"", b"", b"x", b"x"]);
    let good = good[0].1.event.as_ref().unwrap();
    assert_eq!((good.id(), good.data_bytes().as_deref()), ("good", Some(&b"\x00\x01"[..])));
    assert_eq!(good.extension("partitionkey"), Some(&"k".into()));
}
