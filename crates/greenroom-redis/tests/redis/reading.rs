//! What is read of a stream, and from where.

use std::time::{Duration, UNIX_EPOCH};

use greenroom_bus::source::{InputState, Partition, Pull, Source, StartAt};
use greenroom_redis::{RedisInput, RedisKey, source::RedisSource};

use crate::{
    reader::{Reader, numbers},
    server::{TestStream, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn n04_a_new_group_begins_where_it_is_told_to() {
    let Some(stream) = TestStream::new("n04_start") else { return };
    for (id, number) in (1_000..).zip(0..6) {
        stream.publish_as(&format!("{id}-1"), [number]).await;
    }
    let between = UNIX_EPOCH + Duration::from_millis(1_003);
    let input = |group: &str, start| RedisInput { start, group: group.into(), ..stream.input("c") };
    let mut earliest = Reader::open(input("earliest", StartAt::Earliest)).await;
    let mut time = Reader::open(input("time", StartAt::Time(between))).await;
    let mut latest = Reader::open(input("latest", StartAt::Latest)).await;
    stream.publish(6..8).await;
    assert_eq!(earliest.finish(8).await, numbers(0..8));
    assert_eq!(time.finish(5).await, numbers(3..8));
    assert_eq!(latest.finish(2).await, numbers(6..8));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_streams_are_partitions_with_a_lag_of_their_own() {
    let Some(one) = TestStream::new("several") else { return };
    let two = TestStream::fresh(one.address.clone());
    one.publish(0..20).await;
    two.publish(100..140).await;
    let streams = vec![one.name.clone(), two.name.clone()];
    let input = RedisInput { streams, batch: 5, ..one.input("c") };
    let soon = RedisInput { claim_after: Duration::from_millis(400), ..input };
    let mut reader = Reader::open(soon).await;
    reader.source.set_paused(&[Partition(1)]);
    assert_eq!(reader.finish(20).await, numbers(0..20));
    let lags = || {
        let partitions = reader.committer.partitions();
        partitions.iter().map(|of| of.lag).collect::<Vec<_>>()
    };
    until("the lag is known", async || lags() == [Some(0), Some(40)]).await;
    reader.source.set_paused(&[Partition(0)]);
    assert_eq!(reader.finish(40).await, numbers(100..140));
    assert_eq!(reader.source.partition(), Partition(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn z12_an_entry_that_is_no_event_is_named_by_its_id() {
    let Some(stream) = TestStream::new("z12") else { return };
    let id = stream.add(&[("data", "{ no"), ("a", "b")]).await;
    let mut reader = Reader::open(stream.input("c")).await;
    let read = reader.next().await;
    assert_eq!((&*read.id, read.event.is_none()), ("{ no", true));
    let place = reader.source.places().unwrap().place(Some(Partition::ONLY), read.position);
    assert_eq!(&*place.source, format!("redis:{}/{id}", stream.name));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_was_removed_while_it_was_in_hand_is_no_event() {
    let Some(stream) = TestStream::new("removed") else { return };
    stream.publish(0..1).await;
    let id = stream.add(&[("data", "{}")]).await;
    stream.publish(2..3).await;
    let mut reader = Reader::open(stream.input("c")).await;
    drop(reader.some(3).await);
    drop(reader);
    let _: u64 = stream.run("XDEL", &[&stream.name, &id]).await;
    let mut reader = Reader::open(stream.input("c")).await;
    assert_eq!(reader.finish(2).await, ["0", "2"]);
    reader.commit().await;
    assert_eq!(stream.pending("c").await, 0, "what is removed is acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_no_stream_is_told() {
    let Some(stream) = TestStream::new("wrong_type") else { return };
    let () = stream.run("SET", &[&stream.name, "text"]).await;
    let key = Some(RedisKey::Stream);
    let opened = RedisSource::open(RedisInput { key, ..stream.input("c") }, None).await;
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("WRONGTYPE") && error.contains("name keys that are streams"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_refused_holds_up_no_other_and_is_read_once_it_is_mended() {
    let Some(stream) = TestStream::new("refused_stream") else { return };
    let mended = TestStream::fresh(stream.address.clone());
    let mut input = stream.input("c");
    input.streams.push(mended.name.clone());
    let claim_after = Duration::from_millis(400);
    let mut reader = Reader::open(RedisInput { claim_after, ..input }).await;
    mended.publish(0..1).await;
    assert_eq!(reader.finish(1).await, ["0"]);
    reader.commit().await;
    let () = mended.run("SET", &[&mended.name, "text"]).await;
    assert_eq!(reader.pull().await, Pull::Revoke);
    reader.give_up();
    stream.publish(1..2).await;
    assert_eq!(reader.finish(1).await, ["1"]);
    reader.commit().await;
    let status = reader.source.status().unwrap();
    until("told", async || {
        let status = status.get();
        status.state == InputState::Refused && status.detail.contains(&mended.name)
    })
    .await;
    let _: u64 = mended.run("DEL", &[&mended.name]).await;
    mended.publish(2..3).await;
    assert_eq!(reader.pull().await, Pull::Revoke, "its group is new");
    reader.give_up();
    assert_eq!(reader.finish(1).await, ["2"]);
    until("told", async || status.get().state == InputState::Assigned).await;
}
