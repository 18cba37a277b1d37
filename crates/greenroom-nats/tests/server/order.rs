//! Order where messages are delivered again (N06).

use std::time::Duration;

use async_nats::jetstream::{AckKind, Message, consumer::PullConsumer};
use futures_util::StreamExt;
use greenroom_bus::source::{Partition, Source};
use greenroom_nats::source::NatsSourceOptions;

use crate::{
    reader::Reader,
    server::{TestStream, until},
};

fn numbers(range: impl IntoIterator<Item = u64>) -> Vec<String> {
    range.into_iter().map(|number| number.to_string()).collect()
}

/// Takes some, settles every other one, and crashes.
fn crash(stream: &TestStream, options: NatsSourceOptions, take: usize) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let mut reader = Reader::open(stream, options).await;
                let taken = reader.some(take).await;
                taken.iter().step_by(2).for_each(crate::reader::Read::done);
                reader.commit().await;
            });
            runtime.shutdown_background();
        });
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_after_a_crash_new_messages_wait_for_old_ones() {
    let Some(stream) = TestStream::new("n06_crash").await else { return };
    stream.publish(0..10, 1).await;
    crash(&stream, stream.options(), 10);
    stream.publish(10..20, 1).await;
    let mut reader = Reader::open(&stream, stream.options()).await;
    assert_eq!(reader.committer().standing().resumed.unwrap().again_at_most, 5);
    let expected = numbers((1..10).step_by(2).chain(10..20));
    assert_eq!(reader.ids(15).await, expected, "what was settled is not given again");
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_new_messages_wait_for_old_ones_after_a_pause_too() {
    let Some(stream) = TestStream::new("n06_pause").await else { return };
    let options = NatsSourceOptions { ack_wait: Duration::from_secs(4), ..stream.options() };
    stream.publish(0..5, 1).await;
    crash(&stream, options.clone(), 5);
    let mut reader = Reader::open(&stream, options).await;
    // Nothing has come back yet: there is nothing to give back.
    reader.source.set_paused(&[Partition::ONLY]);
    reader.commit().await;
    stream.publish(5..8, 1).await;
    reader.source.set_paused(&[]);
    assert_eq!(reader.ids(5).await, numbers([1, 3, 5, 6, 7]));
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}

/// Another client takes so many messages of the same consumer.
async fn steal(stream: &TestStream, count: usize) -> Vec<Message> {
    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let consumer: PullConsumer = made.get_consumer("greenroom").await.unwrap();
    let mut messages = consumer.fetch().max_messages(count).messages().await.unwrap();
    let mut stolen = Vec::new();
    while let Some(message) = messages.next().await {
        stolen.push(message.unwrap());
    }
    assert_eq!(stolen.len(), count);
    stolen
}

/// A reader that is full, so that what is published next can be stolen.
async fn full(stream: &TestStream) -> (Reader, Vec<crate::reader::Read>) {
    // Long enough for a slow machine to report progress in time.
    let ack_wait = Duration::from_secs(3);
    let options = NatsSourceOptions { capacity: 4, batch: 4, ack_wait, ..stream.options() };
    let mut reader = Reader::open(stream, options).await;
    stream.publish(0..4, 1).await;
    let taken = reader.some(4).await;
    until("nothing is asked for", async || stream.consumer("greenroom").await.num_waiting == 0)
        .await;
    // The server would give nothing beyond what the reader may have.
    let made = stream.jetstream().await.get_stream(&stream.name).await.unwrap();
    let mut config = stream.consumer("greenroom").await.config;
    config.max_ack_pending = 100;
    made.update_consumer(config).await.unwrap();
    (reader, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_deliveries_that_are_lost_on_the_way_are_waited_for() {
    let Some(stream) = TestStream::new("n06_lost").await else { return };
    let (mut reader, taken) = full(&stream).await;
    stream.publish(4..10, 1).await;
    // It never says anything, as if its connection had been lost.
    drop(steal(&stream, 3).await);
    taken.iter().for_each(crate::reader::Read::done);
    let mut ids = Vec::new();
    while ids.len() < 6 {
        let read = reader.next().await;
        read.done();
        ids.push(read.id);
    }
    assert_eq!(ids, numbers(4..10));
    assert_eq!(reader.probe.stats().out_of_order, 0);
    stream.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn n06_what_cannot_be_waited_for_is_counted_as_out_of_order() {
    let Some(stream) = TestStream::new("n06_bounded").await else { return };
    let (mut reader, taken) = full(&stream).await;
    stream.publish(4..10, 1).await;
    let stolen = steal(&stream, 2).await;
    let thief = tokio::spawn(async move {
        loop {
            for message in &stolen {
                message.ack_with(AckKind::Progress).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    taken.iter().for_each(crate::reader::Read::done);
    let first = reader.some(4).await;
    let ids: Vec<&str> = first.iter().map(|read| read.id.as_str()).collect();
    assert_eq!(ids, ["6", "7", "8", "9"], "it is not waited for ever");
    first.iter().for_each(crate::reader::Read::done);
    thief.abort();
    let mut late = reader.ids(2).await;
    late.sort();
    assert_eq!(late, ["4", "5"], "they come, late");
    assert_eq!(reader.probe.stats().out_of_order, 2);
    stream.remove().await;
}
