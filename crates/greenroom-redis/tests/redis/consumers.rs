//! Consumers of one group: what each has, leaves, and gets from the others.

use std::time::Duration;

use greenroom_bus::source::{Partition, Pull, Source};
use greenroom_redis::RedisInput;

use crate::{
    reader::{Read, Reader, numbers},
    server::{GROUP, TestStream, until},
};

fn soon(input: RedisInput) -> RedisInput {
    RedisInput { claim_after: Duration::from_millis(400), ..input }
}

#[tokio::test(flavor = "multi_thread")]
async fn z01_a_restart_reads_what_was_in_hand_first_and_in_order() {
    let Some(stream) = TestStream::new("z01_restart") else { return };
    stream.publish(0..100).await;
    let mut killed = Reader::open(stream.input("one")).await;
    let read = killed.some(30).await;
    // In any order, and not all.
    read[10..20].iter().for_each(Read::done);
    killed.commit().await;
    drop((killed, read));
    stream.publish(100..110).await;
    let mut next = Reader::open(stream.input("one")).await;
    let resumed = next.committer.standing().resumed.unwrap();
    // One more if the server has answered the request of the reader that is gone.
    assert!((90..=100).contains(&resumed.again_at_most), "{resumed:?}");
    let expected: Vec<_> = numbers(0..10).into_iter().chain(numbers(20..110)).collect();
    assert_eq!(next.finish(100).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn z02_what_a_consumer_leaves_is_claimed_by_another_after_its_time() {
    let Some(stream) = TestStream::new("z02_left") else { return };
    stream.publish(0..20).await;
    let mut gone = Reader::open(soon(stream.input("gone"))).await;
    let read = gone.some(20).await;
    read[..5].iter().for_each(Read::done);
    gone.commit().await;
    drop((gone, read));
    let mut other = Reader::open(soon(stream.input("other"))).await;
    assert_eq!(other.finish(15).await, numbers(5..20));
    other.commit().await;
    assert_eq!((stream.pending("gone").await, stream.pending("other").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn z13_what_is_in_hand_for_long_is_not_claimed_by_another() {
    let Some(stream) = TestStream::new("z13_slow") else { return };
    stream.publish(0..10).await;
    let mut slow = Reader::open(soon(stream.input("slow"))).await;
    let read = slow.some(10).await;
    let mut other = Reader::open(soon(stream.input("other"))).await;
    // Three times as long as it would take.
    let waited = tokio::time::timeout(Duration::from_millis(1_200), other.next()).await;
    assert!(waited.is_err(), "another consumer has it");
    read.iter().for_each(Read::done);
    slow.commit().await;
    assert_eq!(stream.pending("slow").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn z09_a_stop_gives_back_what_was_not_started_at_once() {
    let Some(stream) = TestStream::new("z09_stop") else { return };
    stream.publish(0..50).await;
    let mut stopped = Reader::open(stream.input("stopped")).await;
    assert_eq!(stopped.finish(10).await, numbers(0..10));
    stopped.end().await;
    // After a minute, if it were not given back.
    let mut other = Reader::open(stream.input("other")).await;
    assert_eq!(other.finish(40).await, numbers(10..50));
}

#[tokio::test(flavor = "multi_thread")]
async fn d15_a_paused_stream_gives_back_what_waits_and_has_it_again_in_order() {
    let Some(stream) = TestStream::new("d15_pause") else { return };
    stream.publish(0..600).await;
    let mut reader = Reader::open(stream.input("one")).await;
    let first = reader.finish(256).await;
    reader.source.set_paused(&[Partition::ONLY]);
    let waits = reader.committer.standing().repeated_at_most;
    until("given back", async || {
        reader.commit().await;
        reader.committer.standing().repeated_at_most == 0
    })
    .await;
    assert!(waits > 0);
    reader.source.set_paused(&[]);
    let all: Vec<_> = first.into_iter().chain(reader.finish(344).await).collect();
    assert_eq!(all, numbers(0..600));
}

#[tokio::test(flavor = "multi_thread")]
async fn d15_an_answer_from_before_a_pause_gave_back_what_waits_overtakes_nothing() {
    let Some(stream) = TestStream::new("d15_in_flight") else { return };
    let mut reader = Reader::open(stream.input("one")).await;
    stream.publish(0..3).await;
    until("read", async || stream.pending("one").await == 3).await;
    // From here on, a read for new entries is in flight, for 250 ms at most.
    reader.source.set_paused(&[Partition::ONLY]);
    until("given back", async || {
        reader.commit().await;
        reader.committer.standing().repeated_at_most == 0
    })
    .await;
    stream.publish(3..4).await;
    reader.source.set_paused(&[]);
    assert_eq!(reader.finish(4).await, numbers(0..4));
}

#[tokio::test(flavor = "multi_thread")]
async fn d12_what_another_consumer_has_taken_is_given_up() {
    let Some(stream) = TestStream::new("d12_taken") else { return };
    stream.publish(0..4).await;
    let claim_after = Duration::from_secs(4);
    let mut frozen = Reader::open(RedisInput { claim_after, ..stream.input("frozen") }).await;
    let read = frozen.some(4).await;
    // As another one does with what a frozen process leaves.
    let all: Vec<Vec<redis::Value>> =
        stream.run("XPENDING", &[&stream.name, GROUP, "-", "+", "9", "frozen"]).await;
    let id: String = redis::from_redis_value(all[0][0].clone()).unwrap();
    let () = stream.run("XCLAIM", &[&stream.name, GROUP, "other", "0", &id, "JUSTID"]).await;
    assert_eq!(frozen.pull().await, Pull::Revoke);
    read.iter().for_each(Read::done);
    frozen.give_up();
    // A result of what was given up changes nothing: what is its own still comes again.
    let again = frozen.some(3).await;
    assert_eq!(again.iter().map(|read| &*read.id).collect::<Vec<_>>(), ["1", "2", "3"]);
    again.iter().for_each(Read::done);
    frozen.commit().await;
    assert_eq!(stream.pending("other").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_comes_again_after_its_time() {
    let Some(stream) = TestStream::new("refused") else { return };
    stream.publish(0..3).await;
    let mut reader = Reader::open(soon(stream.input("one"))).await;
    let read = reader.some(3).await;
    read[0].done();
    read[1].refuse();
    read[2].done();
    let again = reader.next().await;
    assert_eq!((&*again.id, again.position), ("1", read[1].position));
    again.done();
    reader.commit().await;
    assert_eq!((stream.pending("one").await, reader.committer.standing().repeated_at_most), (0, 0));
}
