//! Many events that are stuck, and the guard that moves the oldest (F08).

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use greenroom_bus::{
    settlement::{Outcome, Settled},
    source::Source,
};
use greenroom_kafka::{
    KafkaInput,
    source::{GuardOptions, KafkaSource},
};
use krafka::{
    error::ErrorCode,
    testing::{ApiKey, Control},
};
use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    message::Headers,
    producer::BaseRecord,
};

use super::{
    fake::{broker, fake},
    support::{
        PATIENCE, Publisher, create_topic, event, group, options, positions, pull, real_broker,
        remove_below, unique,
    },
};

const HANDLED: Settled = Settled::Acknowledged(Outcome::Handled);
/// More than fit behind the first, where one in a hundred is stuck.
const EVENTS: u64 = 25_000;

/// As good as random, so that each takes its room in a commit; and the first.
fn is_stuck(position: u64) -> bool {
    position == 0 || (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).is_multiple_of(100)
}

fn stuck() -> impl Iterator<Item = u64> {
    (0..EVENTS).filter(|position| is_stuck(*position))
}

fn guarded(broker: &str, name: &str, guard: GuardOptions) -> KafkaInput {
    let mut options = options(broker, name, &[name.to_owned()]);
    options.metadata_limit = 128;
    options.guard = Some(guard);
    options
}

fn publish(broker: &str, name: &str) {
    create_topic(broker, name, 1);
    let publisher = Publisher::new(broker);
    (0..EVENTS).for_each(|number| publisher.event(name, 0, &event(number, &number.to_string())));
    publisher.flush();
}

/// Pulls and handles all but what is stuck, until all has come or nothing more comes for so long.
async fn handle(source: &mut KafkaSource, patience: Duration) -> u64 {
    handle_until(source, EVENTS, patience).await
}

async fn handle_until(source: &mut KafkaSource, count: u64, patience: Duration) -> u64 {
    let mut received = 0;
    while received < count {
        let mut taken = Vec::new();
        let pulled = tokio::time::timeout(patience, source.pull(&mut taken)).await;
        let Ok(pulled) = pulled else { break };
        pulled.unwrap();
        received += taken.len() as u64;
        let receipts = source.receipts().unwrap();
        let done = taken.iter().filter(|taken| !is_stuck(taken.position));
        done.for_each(|taken| receipts.settled(taken.position, HANDLED));
    }
    received
}

/// What lies in a topic, by the offsets that its records had where they were.
fn moved(broker: &str, topic: &str, from: &str) -> BTreeMap<u64, (String, Vec<u8>)> {
    let consumer: BaseConsumer = group(broker, "reads");
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
    consumer.assign(&list).unwrap();
    let (_, end) = consumer.fetch_watermarks(topic, 0, PATIENCE).unwrap();
    let mut records = BTreeMap::new();
    let mut next = 0;
    while next < end {
        let Some(record) = consumer.poll(PATIENCE) else { panic!("{next} of {end} came") };
        let record = record.unwrap();
        next = record.offset() + 1;
        let headers: BTreeMap<&str, &str> = record
            .headers()
            .unwrap()
            .iter()
            .map(|header| (header.key, std::str::from_utf8(header.value.unwrap()).unwrap()))
            .collect();
        assert_eq!((headers["greenroom_topic"], headers["greenroom_partition"]), (from, "0"));
        assert_eq!(headers["greenroom_reason"], "head_of_line");
        let key = std::str::from_utf8(record.key().unwrap()).unwrap().to_owned();
        let offset = headers["greenroom_offset"].parse().unwrap();
        records.insert(offset, (key, record.payload().unwrap().to_vec()));
    }
    records
}

#[tokio::test]
async fn f08_the_oldest_of_many_stuck_events_are_moved_and_the_partition_is_read_on() {
    let broker = broker();
    let (name, aside) = (unique("f08"), unique("f08-aside"));
    publish(&broker, &name);
    create_topic(&broker, &aside, 1);
    let guard = GuardOptions { events: 10_000, ..GuardOptions::new(&aside) };
    let mut source = KafkaSource::open(guarded(&broker, &name, guard), None).unwrap();
    let commits = source.committer().unwrap();
    assert_eq!(handle(&mut source, PATIENCE).await, EVENTS);
    commits.commit().await.unwrap();
    drop((source, commits));
    let moved = moved(&broker, &aside, &name);
    let left = stuck().count() - moved.len();
    assert!(!moved.is_empty() && left > 0, "{} are moved", moved.len());
    // The oldest, as they were.
    assert!(moved.keys().copied().eq(stuck().take(moved.len())));
    for (offset, (key, payload)) in &moved {
        assert_eq!(*key, offset.to_string());
        let mut json = Vec::new();
        event(*offset, key).write_json(&mut json);
        assert_eq!(*payload, json);
    }
    // What is stuck and was not moved comes again; so may what was moved since the commit.
    let options = options(&broker, &name, std::slice::from_ref(&name));
    let mut after = KafkaSource::open(options, None).unwrap();
    let (mut again, last) = (Vec::new(), stuck().last());
    while again.last().copied() < last {
        again.extend(positions(&pull(&mut after, 1).await, 0));
    }
    let is_left = |position: &u64| !moved.contains_key(position);
    assert!(again.iter().copied().filter(is_left).eq(stuck().skip(moved.len())));
    assert!(again.iter().all(|position| is_stuck(*position)));
}

#[tokio::test]
async fn f08_a_guard_whose_budget_is_spent_moves_no_more() {
    let broker = broker();
    let (name, aside) = (unique("f08"), unique("f08-aside"));
    publish(&broker, &name);
    create_topic(&broker, &aside, 1);
    let guard = GuardOptions { events: 10, ..GuardOptions::new(&aside) };
    let mut source = KafkaSource::open(guarded(&broker, &name, guard), None).unwrap();
    let received = handle(&mut source, Duration::from_secs(5)).await;
    assert!(received < EVENTS, "what is stuck holds the partition up");
    let moved = moved(&broker, &aside, &name);
    assert!(moved.into_keys().eq(stuck().take(10)));
}

#[tokio::test]
async fn f08_what_cannot_be_moved_stays_open() {
    let fake = fake();
    let broker = fake.bootstrap_servers();
    let (name, aside) = (unique("f08"), unique("f08-aside"));
    publish(&broker, &name);
    create_topic(&broker, &aside, 1);
    fake.on(ApiKey::Produce, |_| Control::Error(ErrorCode::TopicAuthorizationFailed));
    let guard = GuardOptions { events: 10_000, ..GuardOptions::new(&aside) };
    let mut source = KafkaSource::open(guarded(&broker, &name, guard), None).unwrap();
    let commits = source.committer().unwrap();
    let received = handle(&mut source, Duration::from_secs(5)).await;
    assert!(received < EVENTS, "what is stuck holds the partition up");
    commits.commit().await.unwrap();
    let standing = commits.partitions().pop().unwrap();
    assert_eq!(standing.oldest_open, 0);
    assert_eq!(fake.next_offset(&aside, 0), Some(0));
}

#[tokio::test]
async fn f08_what_retention_has_removed_is_left_and_those_behind_it_are_moved() {
    let Some(broker) = real_broker() else { return };
    let (name, aside) = (unique("f08"), unique("f08-aside"));
    publish(&broker, &name);
    create_topic(&broker, &aside, 1);
    let guard = GuardOptions { events: 10_000, ..GuardOptions::new(&aside) };
    let mut source = KafkaSource::open(guarded(&broker, &name, guard), None).unwrap();
    let commits = source.committer().unwrap();
    let first = handle_until(&mut source, 2_000, PATIENCE).await;
    remove_below(&broker, &name, 1_000);
    handle_until(&mut source, EVENTS - first, Duration::from_secs(10)).await;
    let moved = moved(&broker, &aside, &name);
    let expected = stuck().filter(|position| *position >= 1_000);
    assert!(moved.len() > 10 && moved.keys().copied().eq(expected.take(moved.len())));
    assert_eq!(commits.partitions().pop().unwrap().oldest_open, 0);
}

/// As where the topic was deleted and made again, and is as long as before.
#[tokio::test]
async fn f08_a_record_that_was_not_read_is_not_moved_in_the_place_of_one_that_was() {
    let fake = fake();
    let broker = fake.bootstrap_servers();
    let (name, aside, later) = (unique("f08"), unique("f08-aside"), unique("f08-later"));
    [&name, &aside, &later].iter().for_each(|topic| create_topic(&broker, topic, 1));
    let publisher = Publisher::new(&broker);
    // Each in a batch of its own.
    publisher.event(&name, 0, &event(0, "0"));
    publisher.flush();
    let in_an_hour = SystemTime::now() + Duration::from_secs(3_600);
    let in_an_hour = in_an_hour.duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let record = BaseRecord::<str, [u8], ()>::to(&later).partition(0).key("other").payload(b"{}");
    publisher.0.send(record.timestamp(in_an_hour)).map_err(|(error, _)| error).unwrap();
    publisher.flush();
    (1..EVENTS).for_each(|at| publisher.event(&name, 0, &event(at, &at.to_string())));
    publisher.flush();
    // Nothing is moved before the first is another one.
    fake.on(ApiKey::Produce, |_| Control::Error(ErrorCode::TopicAuthorizationFailed));
    let guard = GuardOptions { events: 10_000, ..GuardOptions::new(&aside) };
    let mut source = KafkaSource::open(guarded(&broker, &name, guard), None).unwrap();
    let first = handle(&mut source, Duration::from_secs(3)).await;
    assert!(first < EVENTS, "what is stuck holds the partition up");
    fake.with_state(|state| {
        let other = state.partition_mut(&later, 0).unwrap().log[0].clone();
        state.partition_mut(&name, 0).unwrap().log[0] = other;
    });
    fake.clear_hooks();
    // The guard waits for ten seconds after it has failed.
    handle_until(&mut source, 1_000, Duration::from_secs(20)).await;
    let moved = moved(&broker, &aside, &name);
    let expected = stuck().filter(|position| *position > 0);
    assert!(moved.len() > 10 && moved.keys().copied().eq(expected.take(moved.len())));
}
