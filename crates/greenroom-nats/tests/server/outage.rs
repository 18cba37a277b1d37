//! A server that goes away and comes back (N05, Z07). Each test has a server of its own, since it
//! stops it.

use std::time::Duration;

use async_nats::jetstream::stream::StorageType;
use greenroom_nats::NatsInput;

use crate::{
    own_server::Server,
    reader::{Read, Reader},
    server::{TestStream, until},
};

async fn stream(server: &Server) -> TestStream {
    TestStream::at(server.address(), StorageType::File).await
}

/// Reads everything, and settles it in between: what was read, in this order.
async fn read_all(reader: &mut Reader, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let read = reader.next().await;
        read.done();
        ids.push(read.id);
    }
    ids
}

fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn z07_a_server_that_is_restarted_loses_nothing_and_no_order() {
    let Some(server) = Server::start("z07_restart") else { return };
    let stream = stream(&server).await;
    stream.publish(0..200, 1).await;
    let options = NatsInput { batch: 50, ..stream.options() };
    let mut reader = Reader::open(options).await;
    let mut ids = read_all(&mut reader, 60).await;
    // In hand while it is away, and settled before it is back.
    let in_hand = reader.some(20).await;
    server.script("down");
    in_hand.iter().for_each(Read::done);
    ids.extend(in_hand.into_iter().map(|read| read.id));
    // Nobody confirms it, and it is not taken for confirmed.
    reader.commit().await;
    assert!(reader.committer().standing().repeated_at_most >= 20);
    server.script("up");
    ids.extend(read_all(&mut reader, 120).await);
    assert_eq!(ids, numbers(0..200));
    reader.commit().await;
    let pending = async || stream.consumer("greenroom").await.num_ack_pending == 0;
    until("all acknowledged", pending).await;
    assert_eq!((reader.probe.stats().out_of_order, reader.probe.stats().reconnects), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn z07_a_server_that_is_killed_loses_nothing() {
    let Some(server) = Server::start("z07_kill") else { return };
    let stream = stream(&server).await;
    stream.publish(0..200, 1).await;
    let options = NatsInput { batch: 50, ..stream.options() };
    let mut reader = Reader::open(options).await;
    let mut ids = read_all(&mut reader, 100).await;
    server.script("kill");
    server.script("up");
    // What it had heard and forgotten is delivered again, and skipped here.
    ids.extend(read_all(&mut reader, 100).await);
    assert_eq!(ids, numbers(0..200), "each once, in order");
    reader.commit().await;
    let pending = async || stream.consumer("greenroom").await.num_ack_pending == 0;
    until("all acknowledged", pending).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n05_a_start_waits_for_a_server_that_is_about_to_come() {
    let Some(server) = Server::start("n05_start") else { return };
    let stream = stream(&server).await;
    stream.publish(0..3, 0).await;
    server.script("down");
    let input = NatsInput { connect_within: Duration::from_secs(60), ..stream.options() };
    let opening = tokio::spawn(async {
        greenroom_nats::source::NatsSource::open(input, None).await.map(drop)
    });
    server.script("up");
    opening.await.unwrap().unwrap();
}
