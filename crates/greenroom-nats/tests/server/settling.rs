//! What the server hears of each message, and what it delivers again (N01 to N03, D12).

use std::time::Duration;

use async_nats::jetstream::{
    consumer::{AckPolicy, pull, push},
    stream::{Config, StorageType, SubjectTransform},
};
use futures_util::StreamExt;
use greenroom_bus::source::{Partition, Pull, Source};
use greenroom_nats::{NatsInput, kinds::Partitions, source::NatsSource};

use crate::{
    reader::Reader,
    server::{TestStream, unique, until},
};

/// Long enough that nothing in a test comes back because its time is over.
const LONG: Duration = Duration::from_secs(120);

/// Short enough to be waited for, and long enough for a slow machine to report progress in time.
const SHORT: Duration = Duration::from_secs(4);

async fn nothing_is_pending(stream: &TestStream, consumer: &str) {
    until("nothing pending", async || stream.consumer(consumer).await.num_ack_pending == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_what_is_in_hand_is_never_delivered_again() {
    let Some(stream) = TestStream::new("n01_in_hand").await else { return };
    let options = NatsInput { ack_wait: SHORT, ..stream.options() };
    let mut reader = Reader::open(options).await;
    stream.publish(0..20, 0).await;
    let taken = reader.some(10).await;
    // Part of it is never asked for: it waits in the source, paused, while the rest is in hand.
    reader.source.set_paused(&[Partition::ONLY]);
    // Only time can show that it does not pass.
    tokio::time::sleep(SHORT * 5 / 2).await;
    assert_eq!(stream.consumer("greenroom").await.num_redelivered, 0);
    taken.iter().for_each(crate::reader::Read::done);
    reader.source.set_paused(&[]);
    reader.some(10).await.iter().for_each(crate::reader::Read::done);
    nothing_is_pending(&stream, "greenroom").await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n01_the_consumer_has_as_many_pending_as_there_is_room() {
    let Some(stream) = TestStream::new("n01_capacity").await else { return };
    let options = NatsInput { capacity: Some(7), batch: 3, ack_wait: LONG, ..stream.options() };
    let mut reader = Reader::open(options.clone()).await;
    assert_eq!(stream.consumer("greenroom").await.config.max_ack_pending, 7);
    stream.publish(0..20, 0).await;
    let taken = reader.some(7).await;
    assert_eq!(stream.consumer("greenroom").await.num_ack_pending, 7);
    for read in &taken {
        read.done();
    }
    reader.some(7).await.iter().for_each(crate::reader::Read::done);
    reader.some(6).await.iter().for_each(crate::reader::Read::done);
    reader.end().await;
    // It follows what is configured.
    let reader = Reader::open(NatsInput { capacity: Some(9), ..options }).await;
    assert_eq!(stream.consumer("greenroom").await.config.max_ack_pending, 9);
    reader.end().await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_a_dead_letter_is_terminated_and_the_rest_acknowledged() {
    let Some(stream) = TestStream::new("n02_term").await else { return };
    let client = async_nats::connect(&stream.address).await.unwrap();
    let subject = format!("$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{}.greenroom", stream.name);
    let mut terminated = client.subscribe(subject).await.unwrap();
    client.flush().await.unwrap();
    let mut reader = Reader::open(stream.options()).await;
    stream.publish(0..3, 0).await;
    let taken = reader.some(3).await;
    taken[0].done();
    taken[1].dead();
    taken[2].done();
    let advisory = tokio::time::timeout(LONG, terminated.next()).await.unwrap().unwrap();
    let advisory = String::from_utf8_lossy(&advisory.payload).into_owned();
    assert!(
        advisory.contains("\"stream_seq\":2") && advisory.contains("dead letter"),
        "{advisory}"
    );
    nothing_is_pending(&stream, "greenroom").await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_what_is_refused_is_not_acknowledged_and_comes_back() {
    let Some(stream) = TestStream::new("n02_refused").await else { return };
    let mut reader = Reader::open(stream.options()).await;
    stream.publish(0..2, 0).await;
    let taken = reader.some(2).await;
    taken[0].refuse();
    taken[1].done();
    let again = reader.next().await;
    assert_eq!((again.id.as_str(), again.position), ("0", 1));
    again.done();
    nothing_is_pending(&stream, "greenroom").await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_what_was_not_started_is_given_back_at_the_end() {
    let Some(stream) = TestStream::new("n02_given_back").await else { return };
    let options = NatsInput { ack_wait: LONG, batch: 10, ..stream.options() };
    let mut reader = Reader::open(options.clone()).await;
    stream.publish(0..30, 0).await;
    let taken = reader.some(5).await;
    taken[..3].iter().for_each(crate::reader::Read::done);
    taken[3..].iter().for_each(crate::reader::Read::refuse);
    reader.end().await;
    // They would come after two minutes otherwise.
    let mut reader = Reader::open(options).await;
    let expected: Vec<String> = (3..30).map(|number| number.to_string()).collect();
    assert_eq!(reader.ids(27).await, expected, "in order, none twice");
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_what_waits_in_a_paused_partition_is_given_back() {
    let Some(stream) = TestStream::new("n02_paused").await else { return };
    let options = NatsInput { ack_wait: LONG, ..stream.options() };
    let mut reader = Reader::open(options).await;
    reader.source.set_paused(&[Partition::ONLY]);
    stream.publish(0..10, 0).await;
    reader.commit().await;
    // What the server has delivered before the pause was noticed is back with it by now.
    let info = stream.consumer("greenroom").await;
    assert_eq!(info.num_waiting, 0, "nothing is asked for");
    reader.source.set_paused(&[]);
    let expected: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(reader.ids(10).await, expected);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_partitions_of_mapped_subjects_are_read_each_by_its_consumer() {
    let Some(address) = crate::server::address("n03_partitions") else { return };
    let stream = TestStream { address, name: unique("test") };
    let name = &stream.name;
    let config = Config {
        name: name.clone(),
        subjects: vec![format!("{name}.*")],
        storage: StorageType::Memory,
        subject_transform: Some(SubjectTransform {
            source: format!("{name}.*"),
            destination: format!("{name}.{{{{partition(3,1)}}}}.{{{{wildcard(1)}}}}"),
        }),
        ..Config::default()
    };
    stream.jetstream().await.create_stream(config).await.unwrap();
    stream.publish(0..60, 20).await;
    let partitioned = |partitions: Vec<u32>| NatsInput {
        subjects: Some(vec![format!("{name}.{{partition}}.*")]),
        partitions: Some(Partitions(partitions)),
        ..stream.options()
    };
    let mut first = Reader::open(partitioned(vec![0, 2])).await;
    let mut second = Reader::open(partitioned(vec![1])).await;
    let of_second = stream.consumer("greenroom-1").await.num_pending
        + stream.consumer("greenroom-1").await.num_ack_pending as u64;
    let (theirs, ours) =
        (second.ids(of_second as usize).await, first.ids(60 - of_second as usize).await);
    let keys = |ids: &[String]| {
        let key = |id: &String| id.parse::<u64>().unwrap() % 20;
        ids.iter().map(key).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(keys(&theirs).is_disjoint(&keys(&ours)), "a key is in one partition");
    assert!(!theirs.is_empty() && !ours.is_empty());
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d08_lag_and_what_is_open_are_told() {
    let Some(stream) = TestStream::new("d08_lag").await else { return };
    stream.publish(0..50, 0).await;
    let options = NatsInput { capacity: Some(10), batch: 10, ..stream.options() };
    let mut reader = Reader::open(options).await;
    let taken = reader.some(10).await;
    let standing = || reader.committer().partitions()[0];
    assert_eq!((standing().next, standing().oldest_open, standing().lag), (11, 1, Some(40)));
    taken[0].done();
    assert_eq!(standing().oldest_open, 2);
    reader.commit().await;
    // What took its place may be here already.
    assert!([9, 10].contains(&reader.committer().standing().repeated_at_most));
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_stream_that_was_made_anew_is_another_one() {
    let Some(stream) = TestStream::new("d12_anew").await else { return };
    let mut reader = Reader::open(stream.options()).await;
    stream.publish(0..3, 0).await;
    let old = reader.some(3).await;
    stream.remove().await;
    stream.make(StorageType::Memory).await;
    stream.publish(100..103, 0).await;
    assert_eq!(reader.pull().await, Pull::Revoke);
    assert_eq!(reader.give_up(), [Partition::ONLY]);
    let new = reader.some(3).await;
    let ids: Vec<&str> = new.iter().map(|read| read.id.as_str()).collect();
    assert_eq!(ids, ["100", "101", "102"], "at the same positions");
    old.iter().for_each(crate::reader::Read::done);
    reader.commit().await;
    assert_eq!(stream.consumer("greenroom").await.num_ack_pending, 3, "late results are fenced");
    assert_eq!(reader.probe.stats().fenced, 3);
    new.iter().for_each(crate::reader::Read::done);
    nothing_is_pending(&stream, "greenroom").await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_a_consumer_follows_the_subjects_that_are_configured() {
    let Some(stream) = TestStream::new("n03_filters").await else { return };
    let only = |filters: &[&str]| NatsInput {
        subjects: Some(filters.iter().map(|of| format!("{}.{of}", stream.name)).collect()),
        ..stream.options()
    };
    let mut reader = Reader::open(only(&["1"])).await;
    stream.publish(0..3, 0).await;
    reader.some(1).await.iter().for_each(crate::reader::Read::done);
    reader.end().await;
    let mut reader = Reader::open(only(&[])).await;
    stream.publish(3..5, 0).await;
    let read = reader.some(2).await;
    assert_eq!([&read[0].id, &read[1].id], ["3", "4"], "all of it, from where it was");
    read.iter().for_each(crate::reader::Read::done);
    reader.end().await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n02_what_is_done_after_the_source_has_gone_is_acknowledged() {
    let Some(stream) = TestStream::new("n02_later").await else { return };
    let options = NatsInput { ack_wait: LONG, ..stream.options() };
    let mut reader = Reader::open(options).await;
    stream.publish(0..5, 0).await;
    let taken = reader.some(5).await;
    let committer = reader.close();
    for read in &taken {
        committer.commit().await.unwrap();
        read.done();
    }
    committer.commit().await.unwrap();
    assert_eq!(stream.consumer("greenroom").await.num_ack_pending, 0);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_a_stream_that_was_made_anew_is_read_from_its_start() {
    let Some(stream) = TestStream::new("d12_anew_start").await else { return };
    let options = NatsInput { start: greenroom_bus::source::StartAt::Latest, ..stream.options() };
    let mut reader = Reader::open(options).await;
    stream.publish(0..5, 0).await;
    reader.some(5).await.iter().for_each(crate::reader::Read::done);
    reader.commit().await;
    stream.remove().await;
    stream.make(StorageType::Memory).await;
    stream.publish(100..107, 0).await;
    assert_eq!(reader.pull().await, Pull::Revoke);
    reader.give_up();
    let expected: Vec<String> = (100..107).map(|number| number.to_string()).collect();
    assert_eq!(reader.ids(7).await, expected, "what is below the old position too");
    stream.remove().await;
}

async fn remove_consumer(stream: &TestStream) {
    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    made.delete_consumer("greenroom").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_consumer_that_is_made_again_has_what_was_given_back() {
    let Some(stream) = TestStream::new("n05_given_back").await else { return };
    let options = NatsInput { ack_wait: LONG, ..stream.options() };
    let mut reader = Reader::open(options).await;
    stream.publish(0..10, 0).await;
    until("all is here", async || reader.committer().partitions()[0].next == 11).await;
    reader.source.set_paused(&[Partition::ONLY]);
    reader.commit().await;
    remove_consumer(&stream).await;
    reader.source.set_paused(&[]);
    let expected: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(reader.ids(10).await, expected);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_consumer_that_is_made_again_has_what_had_not_come_back() {
    let Some(stream) = TestStream::new("n05_not_back").await else { return };
    let options = NatsInput { ack_wait: LONG, ..stream.options() };
    let mut before = Reader::open(options.clone()).await;
    stream.publish(0..5, 0).await;
    // As of one that is killed, what it has in hand stays so for the server.
    let in_hand = before.some(5).await;
    in_hand[0].done();
    before.close().commit().await.unwrap();
    let mut reader = Reader::open(options).await;
    stream.publish(5..8, 0).await;
    until("it is held back", async || reader.probe.stats().held_back == 3).await;
    remove_consumer(&stream).await;
    let expected: Vec<String> = (1..8).map(|number| number.to_string()).collect();
    assert_eq!(reader.ids(7).await, expected);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_consumer_that_was_removed_is_made_again_where_it_had_got_to() {
    let Some(stream) = TestStream::new("n05_removed").await else { return };
    let mut reader = Reader::open(stream.options()).await;
    stream.publish(0..5, 0).await;
    let taken = reader.some(5).await;
    taken[0].done();
    taken[1].done();
    taken[3].done();
    reader.commit().await;
    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    made.delete_consumer("greenroom").await.unwrap();
    stream.publish(5..8, 0).await;
    assert_eq!(reader.ids(3).await, ["5", "6", "7"], "what is in hand or done is not given again");
    taken[2].done();
    taken[4].done();
    reader.commit().await;
    let pending = async || stream.consumer("greenroom").await.num_ack_pending == 3;
    until("what was done is acknowledged to the new one", pending).await;
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z11_a_message_larger_than_a_request_is_asked_for_alone() {
    let Some(stream) = TestStream::new("z11_large").await else { return };
    let options = NatsInput { batch_bytes: 2_000, ..stream.options() };
    let jetstream = stream.jetstream().await;
    for size in [10, 50_000, 10, 10] {
        let body = vec![b'x'; size];
        let subject = format!("{}.raw", stream.name);
        jetstream.publish(subject, body.into()).await.unwrap().await.unwrap();
    }
    let mut reader = Reader::open(options).await;
    let sizes: Vec<usize> = reader.ids(4).await.iter().map(String::len).collect();
    assert_eq!(sizes, [10, 50_000, 10, 10]);
    stream.remove().await;
}

async fn refusal(options: NatsInput) -> String {
    match NatsSource::open(options, None).await {
        Ok(source) => panic!("{} was opened", source.describe()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_what_cannot_be_read_is_refused_with_what_to_do() {
    let Some(stream) = TestStream::new("n05_refused").await else { return };
    let none = refusal(NatsInput::new(&stream.address, "nowhere", "greenroom")).await;
    assert!(none.contains("there is no stream \"nowhere\"; make it"), "{none}");
    let bad = refusal(NatsInput::new(&stream.address, "a.b", "greenroom")).await;
    assert!(bad.contains("is no name of a stream"), "{bad}");

    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let deliver_subject = unique("push");
    let config = push::Config {
        durable_name: Some("pushes".into()),
        deliver_subject,
        ..push::Config::default()
    };
    made.create_consumer(config).await.unwrap();
    let options = |consumer: &str| NatsInput::new(&stream.address, &stream.name, consumer);
    let pushes = refusal(options("pushes")).await;
    assert!(pushes.contains("is one that pushes"), "{pushes}");
    let config = pull::Config {
        durable_name: Some("all".into()),
        ack_policy: AckPolicy::All,
        ..pull::Config::default()
    };
    made.create_consumer(config).await.unwrap();
    let all = refusal(options("all")).await;
    assert!(all.contains("does not have each message acknowledged by itself"), "{all}");

    let mut away = stream.through("ann:s3cret@127.0.0.1:1");
    away.connect_within = Duration::from_millis(600);
    let away = refusal(away).await;
    assert!(away.contains("no connection to 127.0.0.1:1 within 600ms"), "{away}");
    assert!(!away.contains("s3cret"), "{away}");
    stream.remove().await;
}
