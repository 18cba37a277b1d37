//! A server that goes away and comes back (Z07). Each test has a server of its own, since it stops
//! it.

use std::time::Duration;

use greenroom_bus::source::{InputState, Pull, Source};
use greenroom_redis::{RedisInput, source::RedisSource};

use crate::{
    own_server::Server,
    reader::{Read, Reader, numbers},
    server::{GROUP, TestStream, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn z07_a_server_that_is_killed_loses_nothing_that_it_has_stored() {
    let Some(server) = Server::start("z07_kill") else { return };
    let stream = TestStream::fresh(server.address());
    stream.publish(0..200).await;
    let mut reader = Reader::open(RedisInput { batch: 50, ..stream.input("one") }).await;
    let mut ids = reader.finish(60).await;
    // In hand while it is away, and settled before it is back.
    let in_hand = reader.some(20).await;
    server.script("kill");
    in_hand.iter().for_each(Read::done);
    ids.extend(in_hand.into_iter().map(|read| read.id));
    let status = reader.source.status().unwrap();
    until("told", async || status.get().state == InputState::Lost).await;
    // Nobody confirms it, and it is not taken for confirmed.
    reader.commit().await;
    assert!(reader.committer.standing().repeated_at_most >= 20);
    server.script("up");
    ids.extend(reader.finish(120).await);
    assert_eq!(ids, numbers(0..200), "each once, in order");
    reader.commit().await;
    assert_eq!(stream.pending("one").await, 0);
    assert_eq!(status.get().state, InputState::Assigned);
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_start_waits_for_a_server_that_is_about_to_come() {
    let Some(server) = Server::start("n05_start") else { return };
    let stream = TestStream::fresh(server.address());
    server.script("down");
    let opening = tokio::spawn(RedisSource::open(stream.input("one"), None));
    server.script("up");
    opening.await.unwrap().unwrap();
    server.script("down");
    let input = RedisInput { connect_within: Duration::from_millis(100), ..stream.input("one") };
    let error = RedisSource::open(input, None).await.err().unwrap().to_string();
    assert!(error.contains("is a Redis server running there"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_gone_is_made_again_where_it_had_got_to() {
    let Some(stream) = TestStream::new("group_gone") else { return };
    stream.publish(0..10).await;
    let mut reader = Reader::open(stream.input("one")).await;
    assert_eq!(reader.finish(8).await, numbers(0..8));
    reader.commit().await;
    let _: u64 = stream.run("XGROUP", &["DESTROY", &stream.name, GROUP]).await;
    stream.publish(10..12).await;
    assert_eq!(reader.pull().await, Pull::Revoke);
    reader.give_up();
    assert_eq!(reader.finish(4).await, numbers(8..12), "and nothing that was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_made_anew_is_read_from_its_start() {
    let Some(stream) = TestStream::new("stream_gone") else { return };
    stream.publish(0..10).await;
    let mut reader = Reader::open(stream.input("one")).await;
    assert_eq!(reader.finish(10).await, numbers(0..10));
    reader.commit().await;
    let _: u64 = stream.run("DEL", &[&stream.name]).await;
    // Lower than all before.
    let event = r#"{"specversion":"1.0","id":"new","source":"/test","type":"made"}"#;
    let _: String = stream.run("XADD", &[&stream.name, "5-1", "data", event]).await;
    assert_eq!(reader.pull().await, Pull::Revoke);
    reader.give_up();
    assert_eq!(reader.finish(1).await, ["new"]);
}
