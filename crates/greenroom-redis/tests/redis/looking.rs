//! A look, which leaves everything as it was (C15).

use greenroom_bus::source::{Pull, Source};
use greenroom_redis::source::RedisLooking;

use crate::{
    reader::{Reader, numbers},
    server::TestStream,
};

async fn look(stream: &TestStream) -> Vec<String> {
    let mut looking = RedisLooking::open(&stream.input("c"), None).await.unwrap();
    let mut taken = Vec::new();
    while looking.pull(&mut taken).await.unwrap() == Pull::More {}
    taken.into_iter().map(|one| one.event.unwrap().id().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn c15_a_look_reads_what_the_group_has_not_been_given_and_changes_nothing() {
    let Some(stream) = TestStream::new("c15") else { return };
    assert!(look(&stream).await.is_empty(), "a stream that nobody has made has nothing");
    let exists: bool = stream.run("EXISTS", &[&stream.name]).await;
    assert!(!exists, "and is not made");
    stream.publish(0..600).await;
    assert_eq!(look(&stream).await, numbers(0..600));
    let mut reader = Reader::open(stream.input("c")).await;
    reader.finish(600).await;
    reader.commit().await;
    stream.publish(600..700).await;
    reader.finish(100).await;
    reader.end().await;
    stream.publish(700..710).await;
    assert_eq!(look(&stream).await, numbers(700..710));
    assert_eq!(look(&stream).await, numbers(700..710), "as often as it is looked at");
}
