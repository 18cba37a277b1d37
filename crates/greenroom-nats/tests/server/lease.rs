//! One process reads a consumer at a time (N03).

use std::time::Duration;

use async_nats::jetstream::stream::{Config, StorageType};
use greenroom_nats::{NatsAuth, NatsInput, NatsUser};

use crate::{
    own_server::Server,
    reader::{Read, Reader},
    server::{TestStream, until},
};

fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_a_second_process_waits_until_the_first_has_ended_and_goes_on_in_order() {
    let Some(stream) = TestStream::new("n03_second").await else { return };
    stream.publish(0..10, 1).await;
    let mut first = Reader::open(stream.options()).await;
    let taken = first.some(6).await;
    let mut second = Reader::open(stream.options()).await;
    assert_eq!(second.probe.stats().waiting, 1);
    assert_eq!(second.committer().standing().resumed, None, "the other goes on with that");
    // Both are there for longer than a lease and a delivery last.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (one, other) = (first.probe.stats(), second.probe.stats());
    assert_eq!((one.waiting, one.doubled, other.waiting), (0, 0, 1));
    taken.iter().for_each(Read::done);
    first.end().await;
    stream.publish(10..20, 1).await;
    assert_eq!(second.ids(14).await, numbers(6..20));
    assert_eq!((second.probe.stats().waiting, second.probe.stats().out_of_order), (0, 0));
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_one_that_waits_changes_nothing_of_the_consumer() {
    let Some(stream) = TestStream::new("n03_unchanged").await else { return };
    let first = Reader::open(stream.options()).await;
    let was = stream.consumer("greenroom").await.config;
    let options = NatsInput {
        capacity: Some(7),
        subjects: Some(vec![format!("{}.other", stream.name)]),
        ..stream.options()
    };
    let second = Reader::open(options).await;
    assert_eq!(stream.consumer("greenroom").await.config, was);
    first.end().await;
    let changed = async || stream.consumer("greenroom").await.config.max_ack_pending == 7;
    until("the second has changed it", changed).await;
    drop(second);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_an_account_that_may_keep_no_lease_is_read_without_one_and_says_so() {
    let config = r#"
        authorization { users: [
            { user: root, password: root }
            { user: ann, password: hunter2, permissions: { publish: {
                deny: ["$JS.API.STREAM.*.KV_greenroom-leases", "$KV.greenroom-leases.>"] } } }
        ] }
        no_auth_user: root"#;
    let Some(own) = Server::start_with("n03_denied", config) else { return };
    let stream = TestStream::at(own.address(), StorageType::Memory).await;
    stream.publish(0..3, 1).await;
    let auth = Some(NatsAuth::User(NatsUser { name: "ann".into(), password: "hunter2".into() }));
    let mut reader = Reader::open(NatsInput { auth, ..stream.options() }).await;
    assert_eq!(reader.ids(3).await, numbers(0..3));
    assert_eq!((reader.probe.stats().without_lease, reader.probe.stats().waiting), (1, 0));
    let root = Reader::open(stream.options()).await;
    assert_eq!(root.probe.stats().without_lease, 0, "one that may keeps one");
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_a_bucket_that_is_removed_is_made_again_by_the_process_that_reads() {
    let Some(own) = Server::start("n03_bucket") else { return };
    let stream = TestStream::at(own.address(), StorageType::Memory).await;
    let mut first = Reader::open(stream.options()).await;
    let jetstream = stream.jetstream().await;
    jetstream.delete_stream("KV_greenroom-leases").await.unwrap();
    let there = async || jetstream.get_stream("KV_greenroom-leases").await.is_ok();
    until("it is there again", there).await;
    stream.publish(0..3, 1).await;
    assert_eq!(first.ids(3).await, numbers(0..3));
    let second = Reader::open(stream.options()).await;
    assert_eq!(second.probe.stats().waiting, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn n03_one_whose_lease_is_over_and_not_known_asks_for_nothing() {
    let Some(own) = Server::start("n03_unknown") else { return };
    let stream = TestStream::at(own.address(), StorageType::Memory).await;
    let mut first = Reader::open(stream.options()).await;
    stream.publish(0..3, 1).await;
    assert_eq!(first.ids(3).await, numbers(0..3));
    // Nothing can be written there any more.
    let jetstream = stream.jetstream().await;
    let bucket = jetstream.get_stream("KV_greenroom-leases").await.unwrap();
    let sealed = Config { sealed: true, ..bucket.cached_info().config.clone() };
    jetstream.update_stream(sealed).await.unwrap();
    let asks = async || stream.consumer("greenroom").await.num_waiting == 0;
    until("what it has asked for is over", asks).await;
    stream.publish(3..6, 1).await;
    // As long as it takes to ask again and again.
    tokio::time::sleep(stream.options().ack_wait).await;
    let info = stream.consumer("greenroom").await;
    assert_eq!((info.num_pending, info.delivered.consumer_sequence), (3, 3));
}
